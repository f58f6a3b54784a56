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

void scx_qemu_replace(void *function, void *other, const char *what)
{
	uintptr_t page_size = sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)function & -page_size;
	size_t size = (uintptr_t)function + sizeof(struct jump) - first;
	struct jump jump = to_anywhere;

	jump.target = other;
	if (mprotect((void *)first, size, PROT_READ | PROT_WRITE | PROT_EXEC)) {
		fprintf(stderr, "cannot %s: %s\n", what, strerror(errno));
		_exit(1);
	}
	memcpy(function, &jump, sizeof(jump));
	__builtin___clear_cache(function, (char *)function + sizeof(jump));
	mprotect((void *)first, size, PROT_READ | PROT_EXEC);
}
