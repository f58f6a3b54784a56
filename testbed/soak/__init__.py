# SPDX-License-Identifier: GPL-2.0-only
"""Hours of trouble for a scheduler, in a guest: see `./dev soak --help`."""
