// SPDX-License-Identifier: GPL-2.0-only
/* How a scheduler ended: reads and evaluates the record of exit_info.h. */
#include <bpf/bpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define RULE "================================================================================"

/* Between open and load: set the size of the debug dump, in bytes, for the BPF side and the kernel.
 * 0 leaves the defaults. Returns 0 or a negative errno. */
int scx_exit_prepare(struct bpf_object *obj, uint32_t dump_len)
{
	struct bpf_map *dump = bpf_object__find_map_by_name(obj, "scx_exit_dump");
	struct bpf_map *rodata = bpf_object__find_map_by_name(obj, ".rodata.scx_exit");
	uint32_t *dump_size;

	/* Both are defined by exit_info.bpf.h, which every scheduler of the runner includes. */
	if (!dump || !rodata)
		return -ENOENT;
	if (!dump_len)
		return 0;
	dump_size = bpf_map__initial_value(rodata, &(size_t){ 0 });
	*dump_size = dump_len;
	scx_ops_set(obj, "exit_dump_len", dump_len);
	return bpf_map__set_value_size(dump, dump_len);
}

const struct scx_exit_record *scx_exit_record(const struct bpf_object *obj)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(obj, ".data.scx_exit");

	return map ? bpf_map__initial_value(map, &(size_t){ 0 }) : NULL;
}

/* ops.exit() may be writing the record at the same time. It writes the kind last, so the record is
 * complete if the kind is not SCX_EXIT_NONE. */
static int read_kind(const struct scx_exit_record *rec)
{
	return __atomic_load_n(&rec->kind, __ATOMIC_ACQUIRE);
}

bool scx_exit_pending(const struct scx_exit_record *rec)
{
	return read_kind(rec) != SCX_EXIT_NONE;
}

enum scx_outcome scx_exit_outcome(const struct scx_exit_record *rec, bool ran)
{
	int kind = read_kind(rec);

	if (kind >= SCX_EXIT_ERROR)
		return ran ? SCX_OUTCOME_EJECTED : SCX_OUTCOME_FAILED;
	if ((rec->exit_code & SCX_ECODE_ACT_MASK) == SCX_ECODE_ACT_RESTART)
		return SCX_OUTCOME_RESTART;
	return SCX_OUTCOME_DONE;
}

int scx_outcome_status(enum scx_outcome outcome)
{
	switch (outcome) {
	case SCX_OUTCOME_EJECTED:
		return SCX_STATUS_EJECTED;
	case SCX_OUTCOME_FAILED:
		return SCX_STATUS_FAILED;
	default:
		return SCX_STATUS_OK;
	}
}

/*
 * Replace the control characters in @text, except those in @kept, by '?'. The kernel's texts
 * contain task names, which may be any bytes that the owners of the tasks chose. A name must not
 * send control sequences to a terminal or, unless newlines are @kept, start a new line.
 */
static void clean(char *text, const char *kept)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text) && !strchr(kept, *text))
			*text = '?';
}

void scx_exit_cause(const struct scx_exit_record *rec, char cause[SCX_EXIT_MSG_LEN])
{
	snprintf(cause, SCX_EXIT_MSG_LEN, "%s", rec->msg[0] ? rec->msg : rec->reason);
	clean(cause, "");
}

static void print_dump(const char *dump, size_t len, FILE *out)
{
	char *text = strndup(dump, len);

	if (text) {
		clean(text, "\n\t");
		fprintf(out, "%s\nDEBUG DUMP\n%s\n\n%s\n%s\n", RULE, RULE, text, RULE);
	}
	free(text);
}

void scx_exit_print(const struct scx_exit_record *rec, const char *dump, FILE *out)
{
	char cause[SCX_EXIT_MSG_LEN];

	if (!scx_exit_pending(rec))
		return;
	if (rec->kind >= SCX_EXIT_ERROR && rec->dump_len && dump)
		print_dump(dump, rec->dump_len, out);
	scx_exit_cause(rec, cause);
	fprintf(out, "EXIT: %s", rec->reason);
	if (rec->msg[0])
		fprintf(out, " (%s)", cause);
	fputc('\n', out);
}

/* Return a copy of the dump in the map of exit_info.bpf.h, terminated by a null byte. The caller
 * frees the copy. Returns NULL if there is no memory or the map cannot be read. */
static char *read_dump(const struct bpf_object *obj)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(obj, "scx_exit_dump");
	size_t size = bpf_map__value_size(map);
	uint32_t zero = 0;
	char *dump = calloc(1, size + 1);

	if (dump && bpf_map__lookup_elem(map, &zero, sizeof(zero), dump, size, 0)) {
		free(dump);
		return NULL;
	}
	return dump;
}

void scx_exit_report(const struct bpf_object *obj, const struct scx_exit_record *rec, FILE *out)
{
	char *dump = rec->dump_len ? read_dump(obj) : NULL;

	scx_exit_print(rec, dump, out);
	free(dump);
}
