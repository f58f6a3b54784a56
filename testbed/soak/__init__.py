# SPDX-License-Identifier: GPL-2.0-only
"""Stress test of a scheduler in a guest: see `./dev soak --help`."""
