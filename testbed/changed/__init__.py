# SPDX-License-Identifier: GPL-2.0-only
"""What a change can affect, by the build's own dependencies."""
