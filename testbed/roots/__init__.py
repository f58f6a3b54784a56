# SPDX-License-Identifier: GPL-2.0-only
"""Minimal root file systems of Debian and Ubuntu, in which a script runs."""
