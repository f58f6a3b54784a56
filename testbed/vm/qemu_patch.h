/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces functions of the running QEMU. */
#pragma once

/*
 * Make @function jump to @other, which has the same parameters. QEMU calls its functions directly,
 * so a preloaded function of the same name would have no effect. QEMU exits if its code cannot be
 * changed; then the message says that it cannot do @what.
 */
void scx_qemu_replace(void *function, void *other, const char *what);
