// SPDX-License-Identifier: GPL-2.0-only
/* Set members of struct sched_ext_ops by name, between open and load. */
#include <bpf/btf.h>
#include <scx/ops_flags.h>
#include <string.h>

#include "internal.h"

struct bpf_map *scx_ops_map(const struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			return map;
	return NULL;
}

const struct btf_member *scx_btf_member(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t;
	const struct btf_member *m;

	if (id < 0)
		return NULL;
	t = btf__type_by_id(btf, id);
	m = btf_members(t);
	for (int i = 0; i < btf_vlen(t); i++, m++)
		if (!strcmp(btf__name_by_offset(btf, m->name_off), name))
			return m;
	return NULL;
}

/* Return the address of the initial value of a member, and set *@size to its size in bytes; NULL if
 * the object's struct sched_ext_ops has no such member. */
static void *member_slot(const struct bpf_object *obj, const char *name, size_t *size)
{
	const struct btf *btf = bpf_object__btf(obj);
	const struct btf_member *m = scx_btf_member(btf, "sched_ext_ops", name);
	char *ops = bpf_map__initial_value(scx_ops_map(obj), NULL);

	if (!m || !ops)
		return NULL;
	*size = btf__resolve_size(btf, m->type);
	return ops + m->offset / 8;
}

bool scx_ops_set(const struct bpf_object *obj, const char *member, uint64_t value)
{
	size_t size = 0;
	void *slot = member_slot(obj, member, &size);

	if (!slot)
		return false;
	if (size == sizeof(uint32_t))
		*(uint32_t *)slot = value;
	else
		*(uint64_t *)slot = value;
	return true;
}

bool scx_btf_enum(const struct btf *btf, const char *type, const char *name, uint64_t *value)
{
	const struct btf_type *t;
	int id = btf__find_by_name(btf, type);

	t = id < 0 ? NULL : btf__type_by_id(btf, id);
	for (int i = 0; t && i < btf_vlen(t); i++) {
		/* In the kernel's BTF, a type is an enum or an enum64, depending on its values and
		 * on the kernel. */
		bool is64 = btf_is_enum64(t);
		uint32_t off = is64 ? btf_enum64(t)[i].name_off : btf_enum(t)[i].name_off;

		if (strcmp(btf__name_by_offset(btf, off), name) != 0)
			continue;
		*value = is64 ? btf_enum64_value(&btf_enum64(t)[i]) : (uint32_t)btf_enum(t)[i].val;
		return true;
	}
	return false;
}

/* Return the running kernel's bit of a flag, 0 if the kernel does not know it. */
static uint64_t kernel_ops_flag(const char *name)
{
	const struct btf *btf = scx_kernel_btf();
	uint64_t value = 0;

	if (btf)
		scx_btf_enum(btf, "scx_ops_flags", name, &value);
	return value;
}

bool scx_ops_or_flag(const struct bpf_object *obj, const char *flag)
{
	uint64_t bit = kernel_ops_flag(flag);
	size_t size = 0;
	uint64_t *slot = member_slot(obj, "flags", &size);

	if (!bit || !slot)
		return false;
	*slot |= bit;
	return true;
}

bool scx_ops_set_flag(void *skel, const char *name)
{
	return scx_ops_or_flag(scx_skel_obj(skel), name);
}

bool scx_ops_replace_cpu_release(void *skel, const char *kfunc)
{
	size_t size = 0;
	void **callback = member_slot(scx_skel_obj(skel), "cpu_release", &size);

	if (!scx_kernel_has_kfunc(kfunc)) {
		scx_ops_set_flag(skel, "SCX_OPS_ENQ_MIGRATION_DISABLED");
		return false;
	}
	if (callback)
		*callback = NULL;
	return true;
}

#define FLAG(name, bit) { #name, 1ULL << (bit) },
static const struct {
	const char *name;
	uint64_t bit;
} ops_flags[] = { SCX_OPS_FLAGS(FLAG) };

static void fit_flags(const struct bpf_object *obj)
{
	size_t size = 0;
	uint64_t *flags = member_slot(obj, "flags", &size);

	for (size_t i = 0; flags && i < sizeof(ops_flags) / sizeof(*ops_flags); i++)
		if (*flags & ops_flags[i].bit && !kernel_ops_flag(ops_flags[i].name))
			*flags &= ~ops_flags[i].bit;
}

/* A callback's slot in the opened object is a pointer, NULL if the callback is not defined. */
void scx_ops_fit_kernel(const struct bpf_object *obj)
{
	const struct btf *btf = bpf_object__btf(obj), *kernel = scx_kernel_btf();
	char *ops = bpf_map__initial_value(scx_ops_map(obj), NULL);
	int id = btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT);
	const struct btf_type *t = btf__type_by_id(btf, id);
	const struct btf_member *m = btf_members(t);

	fit_flags(obj);
	for (int i = 0; i < btf_vlen(t); i++, m++) {
		const char *name = btf__name_by_offset(btf, m->name_off);
		void **callback = (void **)(ops + m->offset / 8);

		if (!btf_is_ptr(btf__type_by_id(btf, m->type)) || !*callback ||
		    scx_btf_member(kernel, "sched_ext_ops", name))
			continue;
		fprintf(stderr, "this kernel does not call ops.%s()\n", name);
		*callback = NULL;
	}
}

void scx_ops_fit_cgroups(const struct bpf_object *obj, bool needed)
{
	static const char *const members[] = {
		"cgroup_init",	   "cgroup_exit",	   "cgroup_prep_move",
		"cgroup_move",	   "cgroup_cancel_move",   "cgroup_set_weight",
		"cgroup_set_idle", "cgroup_set_bandwidth",
	};
	size_t size;

	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		void **callback = member_slot(obj, members[i], &size);

		if (callback &&
		    !(needed && scx_btf_member(scx_kernel_btf(), "sched_ext_ops", members[i])))
			*callback = NULL;
	}
	/* SCX_OPS_HAS_CGROUP_WEIGHT only silences a warning of kernels before 6.15. Later kernels,
	 * which have SCX_OPS_ALLOW_QUEUED_WAKEUP, warn if SCX_OPS_HAS_CGROUP_WEIGHT is set. */
	if (needed && !kernel_ops_flag("SCX_OPS_ALLOW_QUEUED_WAKEUP"))
		scx_ops_or_flag(obj, "SCX_OPS_HAS_CGROUP_WEIGHT");
}
