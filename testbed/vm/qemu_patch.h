/* SPDX-License-Identifier: GPL-2.0-only */
/* Replaces functions of the running QEMU. */
#pragma once

/* The first bytes of a function, at least as many as a jump takes. */
struct scx_qemu_code {
	unsigned char bytes[16];
};

/*
 * Make @function jump to @other, which has the same parameters. QEMU calls its functions directly,
 * so a preloaded function of the same name would have no effect. If the code cannot be changed,
 * QEMU exits with the message that it cannot do @what. Returns the code that was replaced.
 */
struct scx_qemu_code scx_qemu_replace(void *function, void *other, const char *what);

/* Undo scx_qemu_replace(), which has returned @original. */
void scx_qemu_restore(void *function, struct scx_qemu_code original, const char *what);
