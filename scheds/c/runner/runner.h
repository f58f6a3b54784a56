/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runner: the shared user-space side of the C schedulers. A scheduler fills in a
 * struct scx_sched and its main() calls scx_run(), which parses the options (once, so that
 * a restart keeps them), checks the machine, loads and attaches the BPF side, prints
 * statistics, restarts on CPU hotplug, and reports how the scheduler ended.
 */
#ifndef __SCX_RUNNER_H
#define __SCX_RUNNER_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The generated skeletons use the types of the exit record. */
#include <scx/exit_info.h>

/* Maximum size of a struct of statistics. */
#define SCX_STATS_MAX_BYTES 1024

/* Exit statuses, the same for every scheduler. */
enum {
	SCX_STATUS_OK = 0, /* ended without an error, such as by a signal or by SysRq-S */
	SCX_STATUS_FAILED = 1, /* a usage error, or the scheduler did not start */
	SCX_STATUS_EJECTED = 2, /* the scheduler was ended by an error while it ran */
};

/* The CPU controls of cgroups. */
enum {
	SCX_CGROUP_WEIGHT = 1 << 0, /* cpu.weight */
	SCX_CGROUP_IDLE = 1 << 1, /* cpu.idle */
	SCX_CGROUP_MAX = 1 << 2, /* cpu.max */
};

/* The functions of a generated skeleton, with void * in place of its type. Use SCX_SKEL(). */
struct scx_skel {
	void *(*open)(void);
	int (*load)(void *skel);
	void (*destroy)(void *skel);
};

/* Kinds of statistics. A client of the statistics socket gets the current value of a gauge. For a
 * counter, the client gets the increase since the last answer with increases that it got or, if
 * there was none, since it connected. If it asks for totals, it gets the increase since the
 * scheduler was loaded. */
enum scx_stat_kind {
	SCX_STAT_COUNTER,
	SCX_STAT_GAUGE,
};

/* A member, of type u64, of the scheduler's struct of statistics. Use SCX_STAT(). */
struct scx_stat {
	const char *name;
	/* A phrase: "Tasks that waited in the queue". */
	const char *desc;
	enum scx_stat_kind kind;
	size_t offset;
};

#define SCX_STAT(type, member, kind, desc) \
	{ #member, desc, SCX_STAT_##kind, offsetof(type, member) }

struct scx_sched {
	/* The program's name: "scx_simple". */
	const char *name;
	/* One sentence for --help, and optionally \v and a closing text. */
	const char *doc;
	/* The scheduler's own options, see argp(3); NULL if it has none. */
	const struct argp_option *options;
	argp_parser_t parse;

	/* Called once, after the kernel has been checked. Returns why the scheduler cannot run
	 * here, in one line, or NULL if it can. Optional. */
	const char *(*check)(void);

	const struct scx_skel *skel;
	/*
	 * The cgroup controls that the scheduler implements with the options given, a set of
	 * SCX_CGROUP_*. If the set is empty, all cgroup callbacks are removed from the object, else
	 * only those that the kernel lacks. NULL: the scheduler implements none of these controls,
	 * and its cgroup callbacks are kept, because they serve another purpose.
	 */
	unsigned int (*cgroups)(void);
	/*
	 * Called between open and load, at the start and at each restart: write the options into
	 * the skeleton's rodata. Set flags with scx_ops_set_flag(). Optional.
	 */
	void (*configure)(void *skel);
	/* Called after the load, before the scheduler is attached; returns 0 or a negative errno.
	 * finish() is called when the scheduler has ended, even if prepare() or the attach failed.
	 * Both are optional. */
	int (*prepare)(void *skel);
	void (*finish)(void *skel);
	/*
	 * For work in user space, such as a policy: called in a loop while the scheduler runs. If
	 * it returns true, it is called again at once. Otherwise it is called when the file
	 * descriptor that wake_fd() returns is readable, after 250 ms at the latest. Both are
	 * optional.
	 */
	bool (*tick)(void *skel);
	int (*wake_fd)(void *skel);

	/* The statistics, terminated by an entry without a name; NULL for none. They are printed as
	 * a line of NAME=VALUE pairs. Counters count since the scheduler was loaded. */
	const struct scx_stat *stats;
	/* The size in bytes of the struct of statistics, at most SCX_STATS_MAX_BYTES, and a
	 * function that fills in the struct. */
	size_t stats_size;
	void (*read_stats)(void *skel, void *stats);
	/* For a scheduler without the statistics above: print a line, without the newline.
	 * Optional. */
	void (*print_stats)(void *skel, FILE *out);
};

/* Define `static const struct scx_skel NAME_skel` from NAME.bpf.skel.h. */
#define SCX_SKEL(name)                               \
	static void *name##_skel_open(void)          \
	{                                            \
		return name##__open();               \
	}                                            \
	static int name##_skel_load(void *skel)      \
	{                                            \
		return name##__load(skel);           \
	}                                            \
	static void name##_skel_destroy(void *skel)  \
	{                                            \
		name##__destroy(skel);               \
	}                                            \
	static const struct scx_skel name##_skel = { \
		.open = name##_skel_open,            \
		.load = name##_skel_load,            \
		.destroy = name##_skel_destroy,      \
	}

/* Run @sched until it ends; returns main()'s exit status. */
int scx_run(const struct scx_sched *sched, int argc, char **argv);

/*
 * For parse(): return @arg, the value of @option, as a whole number within [@min, @max], where @max
 * is below 2^53. Anything else (NaN and trailing text included) ends the program with a one-line
 * message that names @option, which is the long name without dashes, such as "slice-us".
 */
double scx_parse_number(const struct argp_state *state, const char *option, const char *arg,
			double min, double max);

/*
 * For configure(): set the flag @name (SCX_OPS_*) in ops.flags, with the running kernel's value of
 * the flag. Returns false if the kernel does not know the flag.
 */
bool scx_ops_set_flag(void *skel, const char *name);

/*
 * For configure() of a scheduler whose ops.cpu_release() re-enqueues the tasks of a CPU that a task
 * of a higher class has taken. If the kernel has @kfunc, with which another BPF program of the
 * scheduler re-enqueues these tasks, remove the callback, because such kernels report the callback
 * as deprecated. Otherwise set the flag that the callback requires (scx/migration.bpf.h). Returns
 * whether the callback was removed.
 */
bool scx_ops_replace_cpu_release(void *skel, const char *kfunc);

/* Whether the running kernel has the kfunc @name. */
bool scx_kernel_has_kfunc(const char *name);

struct btf;
/* Set *@value to the value of the enumerator @name of @type in @btf. Returns false if there is no
 * such enumerator. */
bool scx_btf_enum(const struct btf *btf, const char *type, const char *name, uint64_t *value);

struct bpf_map;
/*
 * For read_stats(): sum the structs of u64 in @map, which is defined with SCX_PERCPU_COUNTERS(),
 * over all possible CPUs into @sums. @size is the size of one struct in bytes. The sums are 0 if
 * the map cannot be read.
 */
void scx_percpu_sum(const struct bpf_map *map, void *sums, size_t size);

#endif /* __SCX_RUNNER_H */
