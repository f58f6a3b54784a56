// SPDX-License-Identifier: GPL-2.0-only
/* Attaches the table of callbacks, and explains a refusal by the kernel. */
#include <errno.h>
#include <string.h>

#include "internal.h"

int scx_attach(const struct bpf_map *ops, struct bpf_link **link, uint64_t *enable_seq)
{
	struct scx_priority before;
	int err;

	*enable_seq = scx_kernel_enable_seq();
	before = scx_priority_raise_self();
	*link = bpf_map__attach_struct_ops(ops);
	err = errno;
	scx_priority_restore(&before);
	return *link ? 0 : err;
}

const char *scx_attach_error(int err)
{
	static char text[256];

	if (err == EBUSY)
		snprintf(text, sizeof(text), "the scheduler '%s' is running: stop it first",
			 scx_kernel_current_ops());
	else
		snprintf(text, sizeof(text), "the kernel refused the scheduler: %s",
			 err == EINVAL ? scx_kernel_explain_einval() : strerror(err));
	return text;
}
