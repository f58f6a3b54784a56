// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "qemu_patch.h"

/* Machine code that jumps to any address. */
struct __attribute__((packed)) jump {
#if defined(__x86_64__)
	uint16_t load; /* mov $target, %rax */
	void *target;
	uint16_t go; /* jmp *%rax */
#elif defined(__aarch64__)
	uint32_t load; /* ldr x16, target */
	uint32_t go; /* br x16 */
	void *target;
#endif
};

static const struct jump to_anywhere = {
#if defined(__x86_64__)
	.load = 0xb848,
	.go = 0xe0ff,
#elif defined(__aarch64__)
	.load = 0x58000050,
	.go = 0xd61f0200,
#else
#error "write a jump for this architecture"
#endif
};

static void write_code(void *function, const void *code, const char *what)
{
	uintptr_t page_size = sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)function & -page_size;
	size_t size = (uintptr_t)function + sizeof(struct jump) - first;

	if (mprotect((void *)first, size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		fprintf(stderr, "cannot %s: %s\n", what, strerror(errno));
		_exit(1);
	}
	memcpy(function, code, sizeof(struct jump));
	__builtin___clear_cache(function, (char *)function + sizeof(struct jump));
	mprotect((void *)first, size, PROT_READ | PROT_EXEC);
}

struct scx_qemu_code scx_qemu_replace(void *function, void *other, const char *what)
{
	struct scx_qemu_code original = { 0 };
	struct jump jump = to_anywhere;

	_Static_assert(sizeof(original) >= sizeof(jump), "a jump fits");
	memcpy(&original, function, sizeof(jump));
	jump.target = other;
	write_code(function, &jump, what);
	return original;
}

void scx_qemu_restore(void *function, struct scx_qemu_code original, const char *what)
{
	write_code(function, original.bytes, what);
}
