// SPDX-License-Identifier: GPL-2.0-only
/* Reads and prints the statistics of a scheduler. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void scx_percpu_sum(const struct bpf_map *map, void *sums, size_t size)
{
	size_t nr = size / sizeof(uint64_t);
	int nr_cpus = libbpf_num_possible_cpus();
	uint64_t *values, *sum = sums;
	uint32_t key = 0;

	memset(sums, 0, size);
	values = nr_cpus > 0 ? calloc(nr_cpus, size) : NULL;
	if (values && !bpf_map__lookup_elem(map, &key, sizeof(key), values, nr_cpus * size, 0))
		for (size_t i = 0; i < nr_cpus * nr; i++)
			sum[i % nr] += values[i];
	free(values);
}

uint64_t scx_stat_value(const struct scx_stat *stat, const void *stats)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + stat->offset, sizeof(value));
	return value;
}

bool scx_stats_print(const struct scx_sched *sched, void *skel, FILE *out)
{
	uint64_t values[SCX_STATS_MAX_BYTES / sizeof(uint64_t)] = { 0 };

	clearerr(out);
	errno = 0;
	if (sched->print_stats)
		sched->print_stats(skel, out);
	else if (sched->stats)
		sched->read_stats(skel, values);
	else
		return true;
	for (const struct scx_stat *stat = sched->stats; stat && stat->name; stat++)
		fprintf(out, "%s%s=%" PRIu64, stat == sched->stats ? "" : " ", stat->name,
			scx_stat_value(stat, values));
	fputc('\n', out);
	fflush(out);
	return !ferror(out) || errno != EPIPE;
}
