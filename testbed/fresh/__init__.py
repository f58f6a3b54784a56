# SPDX-License-Identifier: GPL-2.0-only
"""Runs the README's two commands in minimal root file systems."""
