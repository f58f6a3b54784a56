# SPDX-License-Identifier: GPL-2.0-only
"""Compares schedulers with each other and with the kernel's own: see docs/bench.md."""
