/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_kfuncs: reports which weak kfunc declarations of scx/kfuncs.bpf.h match this kernel.
 *
 * Prints "NAME 1" or "NAME 0" for each weak declaration. If a declaration that is not weak does not
 * match, libbpf prints an error, and the exit status is 1.
 */
#include <stdbool.h>
#include <stdio.h>

#include <bpf/bpf.h>

#include "scx_kfuncs.bpf.skel.h"

#define NR_KFUNCS (sizeof(skel->data->kfuncs) / sizeof(skel->data->kfuncs[0]))

int main(void)
{
	struct scx_kfuncs *skel = scx_kfuncs__open_and_load();

	if (!skel || bpf_prog_test_run_opts(bpf_program__fd(skel->progs.resolve), NULL))
		return 1;
	for (size_t i = 0; i < NR_KFUNCS; i++)
		printf("%s %d\n", skel->data->kfuncs[i].name, skel->data->kfuncs[i].resolved);
	scx_kfuncs__destroy(skel);
	return 0;
}
