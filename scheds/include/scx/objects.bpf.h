/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that a BPF program allocates, red-black trees and lists of objects, references to
 * objects, and arena memory. The names are those of the kernel's selftests. The kfuncs that the
 * macros call are declared in kfuncs.bpf.h.
 */
#ifndef __SCX_OBJECTS_BPF_H
#define __SCX_OBJECTS_BPF_H

#include "kfuncs.bpf.h"
#include <bpf/bpf_core_read.h>

/* Attribute of a bpf_rb_root or bpf_list_head: the type of the objects in the tree or list, and the
 * name of the member of that type that is the node. */
#define __contains(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))

/* Allocate a zeroed object of a struct type of this program; NULL if there is no memory. */
#define bpf_obj_new(type) ((type *)bpf_obj_new_impl(bpf_core_type_id_local(type), NULL))
#define bpf_obj_drop(obj) bpf_obj_drop_impl(obj, NULL)
/* Take another reference to an object with a struct bpf_refcount. */
#define bpf_refcount_acquire(obj) ((typeof(obj))bpf_refcount_acquire_impl(obj, NULL))

/* Insert @node before the first node for which less(@node, that node) is true. The tree then owns
 * the object. Returns nonzero if the object is already in a tree or list. Call it with the lock of
 * the tree held. */
#define bpf_rbtree_add(root, node, less) bpf_rbtree_add_impl(root, node, less, NULL, 0)

#define bpf_list_push_front(head, node) bpf_list_push_front_impl(head, node, NULL, 0)
#define bpf_list_push_back(head, node) bpf_list_push_back_impl(head, node, NULL, 0)

/* Return the struct @type whose member @member is at @ptr. */
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((void *)(ptr) - offsetof(type, member)))
#endif

/* Convert a mask to struct cpumask, the type of masks that kfuncs only read. */
static inline const struct cpumask *cast_mask(struct bpf_cpumask *mask)
{
	return (const struct cpumask *)mask;
}

/* ---- arena --------------------------------------------------------------- */

/* Conversions of arena pointers between the address spaces of the kernel and of user space. They
 * are empty, because clang 19 and newer convert the pointers (__BPF_FEATURE_ADDR_SPACE_CAST). */
#define cast_kern(ptr) ((void)(ptr))
#define cast_user(ptr) ((void)(ptr))

#endif /* __SCX_OBJECTS_BPF_H */
