// SPDX-License-Identifier: GPL-2.0-only
/*
 * Burns CPU time. `scx_spin` runs forever, `scx_spin SECONDS` until the monotonic clock has
 * advanced by SECONDS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "spin.h"

/* Blocks of no-ops between two reads of the clock. */
#define BLOCKS 2000

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end_s;
	char *rest;

	while (argc < 2)
		spin(BLOCKS);
	end_s = now_s() + strtod(argv[1], &rest);
	if (argc > 2 || *rest || rest == argv[1]) {
		fputs("usage: scx_spin [SECONDS]\n", stderr);
		return 2;
	}
	while (now_s() < end_s)
		spin(BLOCKS);
	return 0;
}
