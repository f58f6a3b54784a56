# SPDX-License-Identifier: GPL-2.0-only
"""The README's two commands in minimal root file systems."""
