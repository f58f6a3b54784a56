/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal interfaces of the runner. */
#ifndef __SCX_RUNNER_INTERNAL_H
#define __SCX_RUNNER_INTERNAL_H

#include <bpf/libbpf.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>

#include "runner.h"

/* The options common to all schedulers. */
struct scx_common_opts {
	double interval_s; /* between two lines of statistics, 0: none */
	uint32_t exit_dump_len; /* bytes, 0: the kernel's default */
	bool partial;
	bool verbose;
};

/* Outcome of one generation of a scheduler. A generation lasts from the open of the BPF object to
 * the end of the scheduler. A restart begins a new generation. */
enum scx_outcome {
	SCX_OUTCOME_DONE,
	SCX_OUTCOME_RESTART,
	SCX_OUTCOME_FAILED,
	SCX_OUTCOME_EJECTED,
};

/* opts.c: parse argv, or print a message and exit. */
void scx_parse_opts(const struct scx_sched *sched, int argc, char **argv,
		    struct scx_common_opts *opts);

/* kernel.c: properties of the running kernel. */
/* NULL if a scheduler can be loaded, else one line that says why not. */
const char *scx_kernel_check(void);
/* Name of the loaded scheduler, "" if there is none. Valid until the next call. */
const char *scx_kernel_current_ops(void);
uint64_t scx_kernel_hotplug_seq(void);
/* Number of schedulers enabled since boot. */
uint64_t scx_kernel_enable_seq(void);
/*
 * Whether the kernel is moving tasks between the ext and the fair class, and does not limit the CPU
 * time of the fair class. This is so while a scheduler is being enabled, and while one is being
 * disabled and /sys/kernel/sched_ext/switch_all reads 0. Early in a disable, the file may still
 * read 1. The kernel then runs tasks of the fair class only within a reserve of CPU time.
 */
bool scx_kernel_is_switching_classes(void);
/* Whether the kernel reserves CPU time for the ext class against the fair class. */
bool scx_kernel_has_ext_server(void);
/* The kernel's BTF, NULL if there is none; valid until scx_kernel_drop_btf(). */
const struct btf *scx_kernel_btf(void);
void scx_kernel_drop_btf(void);
/* Why the kernel may have refused a scheduler with EINVAL. */
const char *scx_kernel_explain_einval(void);

/* priority.c: a thread's priority before it was raised. */
struct scx_priority {
	pid_t thread; /* 0: the calling thread */
	int policy;
	struct sched_param param;
	bool raised; /* false: there is nothing to restore */
};
/* Make the calling thread SCHED_FIFO. Returns its previous priority. */
struct scx_priority scx_priority_raise_self(void);
/* Make another thread SCHED_FIFO, if its policy is SCHED_OTHER. Returns its previous priority. */
struct scx_priority scx_priority_raise_ordinary(pid_t thread);
/* Give the thread its previous priority again, if the priority was raised. */
void scx_priority_restore(const struct scx_priority *before);

/* rcu.c: make RCU's grace-period kthread SCHED_FIFO, until the caller restores the priority that
 * this returns. After kill -9 of this program, the kthread stays SCHED_FIFO. */
struct scx_priority scx_rcu_boost(void);

/* class_switch.c: start the class-switch helper, which helps the kernel to finish enabling and
 * disabling a scheduler. */
void scx_class_switch_start(void);

/* cgroups.c: the result of scx_cgroups_find(). */
struct scx_cgroups {
	int nr; /* number of cgroups found */
	char first[PATH_MAX + 32]; /* a control of the first one, and the path of that cgroup */
};
/* Find the cgroups below @root where any of @controls (SCX_CGROUP_*) differs from its default. */
void scx_cgroups_find(const char *root, unsigned int controls, struct scx_cgroups *cgroups);
/* The controls that the kernel does not report to schedulers. */
unsigned int scx_cgroups_unreported(void);
/* List the names of @controls, at least one: "cpu.weight, cpu.idle and cpu.max". */
#define SCX_CGROUP_NAMES_LEN 64
void scx_cgroups_name(unsigned int controls, char names[SCX_CGROUP_NAMES_LEN]);

/* priority.c: a thread's nice value before scx_nice_raise(). */
struct scx_nice {
	int nice;
	bool raised; /* false: there is nothing to restore */
};
/* Give the calling thread the lowest nice value, -20, to load a scheduler. Returns its previous
 * nice value. */
struct scx_nice scx_nice_raise(void);
void scx_nice_restore(const struct scx_nice *before);

/* ops.c: the struct_ops map of an opened object. */
struct bpf_map *scx_ops_map(const struct bpf_object *obj);
/* Between open and load: set a member of struct sched_ext_ops. Returns false if the object's struct
 * has no member of that name. */
bool scx_ops_set(const struct bpf_object *obj, const char *member, uint64_t value);
/* Between open and load: set a flag in ops.flags. Returns false if the running kernel does not know
 * the flag. */
bool scx_ops_or_flag(const struct bpf_object *obj, const char *flag);
/* Between open and load: clear the callbacks and the flags that the running kernel lacks. */
void scx_ops_fit_kernel(const struct bpf_object *obj);
/* Between open and load: clear the cgroup callbacks that the running kernel lacks, or all of them
 * if they are not @needed. */
void scx_ops_fit_cgroups(const struct bpf_object *obj, bool needed);
/* Return a member of a struct, NULL if the struct or the member does not exist. */
const struct btf_member *scx_btf_member(const struct btf *btf, const char *type, const char *name);

/* attach.c: return 0, or a positive errno that scx_attach_error() explains in one line. @enable_seq
 * is set to scx_kernel_enable_seq() before the attach. */
int scx_attach(const struct bpf_map *ops, struct bpf_link **link, uint64_t *enable_seq);
const char *scx_attach_error(int err);

/* stats.c */
uint64_t scx_stat_value(const struct scx_stat *stat, const void *stats);
/* Print a line, if the scheduler has statistics. Returns false if @out is a pipe whose reader has
 * closed it. */
bool scx_stats_print(const struct scx_sched *sched, void *skel, FILE *out);

/* answers.c: return the answer to a request for statistics, a line that the caller frees; NULL if
 * there is no memory. @now: the current values, NULL between generations. @before: the values from
 * which increases are counted. An answer with increases copies @now to @before. */
char *scx_answer(const struct scx_sched *sched, const char *line, size_t len, const void *now,
		 void *before);
char *scx_answer_too_long(void);

/* server.c: waits for signals and for wake_fd(), and meanwhile serves statistics, if the scheduler
 * has any and the socket can be created. */
struct scx_server;
/* Returns NULL if there is no memory. */
struct scx_server *scx_server_start(const struct scx_sched *sched, int signal_fd);
/* Set the skeleton of the current generation, NULL between generations. */
void scx_server_set_skel(struct scx_server *server, void *skel);
/* Serve clients for @wait_s, or until wake_fd() is readable or a signal is pending. Returns whether
 * a signal is pending. */
bool scx_server_wait(struct scx_server *server, double wait_s);
void scx_server_stop(struct scx_server *server);

/* run.c */
double scx_now_s(void);

/* exit.c */
int scx_exit_prepare(struct bpf_object *obj, uint32_t dump_len);
/* The live record of a loaded object; its kind is 0 while the scheduler runs. */
const struct scx_exit_record *scx_exit_record(const struct bpf_object *obj);
bool scx_exit_pending(const struct scx_exit_record *rec);
/* Classify the end of a generation. @ran: whether the scheduler was enabled. */
enum scx_outcome scx_exit_outcome(const struct scx_exit_record *rec, bool ran);
/* The program's exit status: SCX_STATUS_*. */
int scx_outcome_status(enum scx_outcome outcome);
/* The kernel's message, or its reason if there is no message, as one line. */
void scx_exit_cause(const struct scx_exit_record *rec, char cause[SCX_EXIT_MSG_LEN]);
/* Print how the scheduler ended; @dump is the text of the debug dump, or NULL. */
void scx_exit_print(const struct scx_exit_record *rec, const char *dump, FILE *out);
/* Like scx_exit_print(), with the dump that exit_info.bpf.h has recorded in the object. */
void scx_exit_report(const struct bpf_object *obj, const struct scx_exit_record *rec, FILE *out);

/* The common beginning of all generated skeleton structs. */
struct scx_skel_head {
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *obj;
};

static inline struct bpf_object *scx_skel_obj(void *skel)
{
	return ((struct scx_skel_head *)skel)->obj;
}

#endif /* __SCX_RUNNER_INTERNAL_H */
