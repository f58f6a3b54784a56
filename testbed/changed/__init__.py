# SPDX-License-Identifier: GPL-2.0-only
"""Determines which tests a change affects, by the dependencies of the build."""
