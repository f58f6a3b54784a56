/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF half of all schedulers that have none of their own. */
#include <rustland/rustland.bpf.h>

RL_OPS(rustland_ops);
