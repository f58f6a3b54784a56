/* SPDX-License-Identifier: GPL-2.0-only */
/* Executes one read and one update of a running average. */
#include <scx/common.bpf.h>
#include <scx/ravg.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

SEC("syscall")
int ravg_step(struct ravg_step *step)
{
	struct scx_ravg average = {
		.avg = step->avg,
		.val = step->val,
		.val_at_ns = step->val_at_ns,
	};

	step->read = scx_ravg_read(&average, step->now_ns, step->half_life_ns);
	scx_ravg_set(&average, step->next_val, step->now_ns, step->half_life_ns);
	step->avg = average.avg;
	step->val = average.val;
	step->val_at_ns = average.val_at_ns;
	return 0;
}
