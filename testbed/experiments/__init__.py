# SPDX-License-Identifier: GPL-2.0-only
"""Reproduces known experiments with schedulers, and writes their pages: see docs/experiments."""
