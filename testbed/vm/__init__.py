# SPDX-License-Identifier: GPL-2.0-only
"""Boots real kernels in QEMU and runs commands in them."""
