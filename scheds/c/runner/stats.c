// SPDX-License-Identifier: GPL-2.0-only
/* Reads per-CPU counters of BPF programs. */
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "runner.h"

uint64_t scx_percpu_sum(const struct bpf_map *map, uint32_t idx)
{
	int nr_cpus = libbpf_num_possible_cpus();
	uint64_t sum = 0, *values;

	if (nr_cpus < 1)
		return 0;
	values = calloc(nr_cpus, sizeof(*values));
	if (values &&
	    !bpf_map__lookup_elem(map, &idx, sizeof(idx), values, nr_cpus * sizeof(*values), 0))
		for (int cpu = 0; cpu < nr_cpus; cpu++)
			sum += values[cpu];
	free(values);
	return sum;
}
