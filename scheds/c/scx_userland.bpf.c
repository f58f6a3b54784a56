/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_userland: a scheduler whose policy is a C program, scx_userland.c: weighted virtual runtime,
 * smallest first. It is the C counterpart of scx_rlfifo, to learn from and to copy.
 *
 * The BPF side is that of all policies in user space. It passes tasks to the policy and applies its
 * decisions without a system call per task, lets tasks that the policy may depend on bypass it, and
 * serves tasks in FIFO order while the process is stopped or slow.
 */
#include <rustland/rustland.bpf.h>

RL_OPS(userland_ops, .name = "userland");
