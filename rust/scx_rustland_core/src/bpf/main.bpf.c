/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF side of all schedulers that do not have their own. */
#include <rustland/rustland.bpf.h>

RL_OPS(rustland_ops);
