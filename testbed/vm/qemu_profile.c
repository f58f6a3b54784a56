// SPDX-License-Identifier: GPL-2.0-only
/*
 * A TCG plugin for QEMU: counts how often the guest's CPUs execute each block of instructions,
 * between the first two runs of guest/scx_counters.c. Loaded with
 *
 *   -plugin file=libscx_qemu_profile.so,out=FILE
 *
 * FILE is an array of struct block, a hash table that user space (bench/functions.py) reads. It is
 * mapped into memory, so that it is complete however QEMU ends.
 *
 * One thread emulates all CPUs of a deterministic guest, so the counts need no lock. Counting does
 * not change the guest's behaviour: its time is the number of instructions.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "counters.h"

/* The part of QEMU's qemu-plugin.h that is used here, so that no further package is needed. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef struct qemu_info_t qemu_info_t;
enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t id,
						      struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int cpu, void *data),
					  enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *data, size_t size);

/* The version of the interface, that of QEMU 10.0. */
__attribute__((visibility("default"))) int qemu_plugin_version = 4;

/* A translated block: nr_instructions instructions at an address. An unused entry is zero. */
struct block {
	uint64_t address;
	uint64_t nr_instructions;
	uint64_t nr_executed;
};

/* Far more than a guest executes in a round: about 60,000. */
#define NR_BLOCKS (1U << 20)

static struct block *blocks;

/* A run of scx_counters executes CPUID several times. Marks within this number of executed blocks
 * belong to the same run. */
#define MARK_DISTANCE 100000

/* Number of executed blocks, and the same at the last mark; 0: there was none yet. */
static uint64_t nr_executed, marked_at;
/* How often scx_counters has run. */
static unsigned int nr_readings;

/* Return the entry of a block. If the table is full, blocks share entries. */
static struct block *block_of(uint64_t address, uint64_t nr_instructions)
{
	uint64_t hash = (address ^ nr_instructions << 56) * 0x9e3779b97f4a7c15ULL;
	uint32_t i, at = hash >> 44;
	struct block *block;

	for (i = 0; i < NR_BLOCKS; i++) {
		block = &blocks[(at + i) % NR_BLOCKS];
		if (block->address == address && block->nr_instructions == nr_instructions)
			return block;
		if (!block->address)
			break;
	}
	block->address = address;
	block->nr_instructions = nr_instructions;
	return block;
}

static void executed(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	nr_executed++;
	if (nr_readings == 1)
		block->nr_executed++;
}

static void marked(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	if (!marked_at || nr_executed - marked_at > MARK_DISTANCE)
		nr_readings++;
	marked_at = nr_executed ?: 1;
}

/* Whether the block has an instruction that loads SCX_COUNTERS_LEAF, as only scx_counters does. */
static bool is_mark(const struct qemu_plugin_tb *tb)
{
	const uint32_t leaf = SCX_COUNTERS_LEAF;
	size_t i, at, size, nr = qemu_plugin_tb_n_insns(tb);
	uint8_t code[16];

	for (i = 0; i < nr; i++) {
		size = qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, i), code, sizeof(code));
		for (at = 1; at + sizeof(leaf) <= size; at++)
			if (!memcmp(code + at, &leaf, sizeof(leaf)))
				return true;
	}
	return false;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);

	(void)id;
	/* Addresses of user space. The kernel never loads the leaf. */
	if (!(address >> 63) && is_mark(tb))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, marked, QEMU_PLUGIN_CB_NO_REGS, NULL);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS,
					     block_of(address, qemu_plugin_tb_n_insns(tb)));
}

static struct block *map(const char *path)
{
	size_t size = NR_BLOCKS * sizeof(struct block);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
							       const qemu_info_t *info, int argc,
							       char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fputs("scx_qemu_profile: give out=FILE\n", stderr);
		return -1;
	}
	blocks = map(argv[0] + 4);
	if (!blocks) {
		perror(argv[0] + 4);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
