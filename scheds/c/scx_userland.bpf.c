/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_userland: a scheduler whose policy is a C program, scx_userland.c, which orders tasks by
 * weighted virtual runtime. It is the C counterpart of scx_rlfifo, to learn from and to copy.
 *
 * All policies in user space share the BPF side in rustland.bpf.h. It passes tasks to the policy
 * and applies the policy's decisions without a system call per task, lets tasks that the policy may
 * depend on bypass the policy, and serves tasks in FIFO order while the policy's process does not
 * respond.
 */
#include <rustland/rustland.bpf.h>

RL_OPS(userland_ops, .name = "userland");
