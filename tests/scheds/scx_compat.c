// SPDX-License-Identifier: GPL-2.0-only
/* Selects the wrapper that scx_compat.bpf.c uses, and prints the results. */
#include <bpf/btf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runner/runner.h"
#include "scx_compat.bpf.skel.h"
#include "scx_compat.h"

#define COMPAT_NAME(name) #name,
static const char *const names[] = { COMPAT_USES(COMPAT_NAME) };

#define COMPAT_PAIR(type, name) { #type, #name },
static const struct {
	const char *type, *name;
} constant_names[] = { COMPAT_CONSTANTS(COMPAT_PAIR) };

static uint32_t use;

static const struct argp_option options[] = {
	{ "use", 'u', "WRAPPER", 0, "The wrapper to use; --use=list prints all names" },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != 'u')
		return ARGP_ERR_UNKNOWN;
	if (!strcmp(arg, "list")) {
		for (use = 0; use < NR_COMPAT_USES; use++)
			puts(names[use]);
		exit(SCX_STATUS_OK);
	}
	for (use = 0; use < NR_COMPAT_USES; use++)
		if (!strcmp(arg, names[use]))
			return 0;
	argp_failure(state, SCX_STATUS_FAILED, 0, "--use: there is no wrapper '%s'", arg);
	return 0;
}

static bool kernel_has_kfunc(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return found;
}

static void configure(void *skel)
{
	struct scx_compat *compat = skel;
	bool wants_reenqueue = use == USE_reenqueue_local || use == USE_dsq_reenq;

	compat->rodata->use = use;
	/* scx_can_reenqueue_anywhere() tests for the same kfunc. */
	if (wants_reenqueue && !kernel_has_kfunc("scx_bpf_reenqueue_local___v2")) {
		bpf_program__set_autoload(compat->progs.compat_cpu_release, true);
		compat->struct_ops.compat_ops->cpu_release = compat->progs.compat_cpu_release;
	}
	/* The idle-mask kfuncs with a node need this flag. For other uses it stays clear, because
	 * with the flag, the kernel rejects idle-mask kfuncs without a node. */
	if (use == USE_idle_node)
		scx_ops_set_flag(skel, "SCX_OPS_BUILTIN_IDLE_PER_NODE");
}

/* Print absent=NAME for each constant that the kernel lacks, and wrong=NAME:OURS!=KERNEL'S for each
 * constant that differs from the kernel's value (0 if absent). The values are hexadecimal. */
static void print_odd_constants(const struct scx_compat *compat, FILE *out)
{
	struct btf *btf = btf__load_vmlinux_btf();

	for (int i = 0; btf && i < NR_COMPAT_CONSTANTS; i++) {
		const char *name = constant_names[i].name;
		uint64_t wanted = 0;

		if (!scx_btf_enum(btf, constant_names[i].type, name, &wanted))
			fprintf(out, " absent=%s", name);
		if (compat->bss->constants[i] != wanted)
			fprintf(out, " wrong=%s:%" PRIx64 "!=%" PRIx64, name,
				compat->bss->constants[i], wanted);
	}
	if (!btf)
		fprintf(out, " wrong=no-btf");
	btf__free(btf);
}

static void print_nodes(const struct scx_compat *compat, FILE *out)
{
	fprintf(out, " nr_nodes=%u", compat->bss->nr_nodes);
	for (uint32_t cpu = 0; cpu < compat->bss->nr_cpus && cpu < COMPAT_MAX_CPUS; cpu++)
		fprintf(out, " node=%d", compat->bss->node_of_cpu[cpu]);
}

static void print_stats(void *skel, FILE *out)
{
	const struct scx_compat *compat = skel;

	fprintf(out, "good=%" PRIu64 " bad=%" PRIu64 " bypass_activate=%" PRId64,
		compat->bss->nr_good, compat->bss->nr_bad, compat->data->event_bypass_activate);
	if (use == USE_enums)
		print_odd_constants(compat, out);
	if (use == USE_nodes)
		print_nodes(compat, out);
}

SCX_SKEL(scx_compat);

static const struct scx_sched compat = {
	.name = "scx_compat",
	.doc = "A scheduler that uses one wrapper of compat.bpf.h and checks its effect.",
	.options = options,
	.parse = parse,
	.skel = &scx_compat_skel,
	.configure = configure,
	.print_stats = print_stats,
};

int main(int argc, char **argv)
{
	return scx_run(&compat, argc, argv);
}
