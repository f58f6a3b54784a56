# SPDX-License-Identifier: GPL-2.0-only
"""`./dev package`: packages for distributions."""
