// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_resume: the point where a guest is saved, and from which saved guests are resumed.
 *
 * It asks the host to stop the machine, which is then saved. A deterministic machine stops when all
 * its CPUs are idle (qemu_deterministic.c), any other machine stops at once. In a resumed machine,
 * the host has filled the guest's inbox with a cpio archive, which is unpacked to the root
 * directory. The inbox is memory of a PCI device: reading it only executes instructions, so the
 * timing does not depend on the host.
 *
 * A machine without an inbox cannot be saved: the program does nothing. With --stop, it stops the
 * machine permanently.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ivshmem-plain of QEMU: docs/specs/ivshmem-spec.rst. Its second BAR is the memory. */
#define INBOX_ID "1af4:1110"
#define INBOX_BAR "resource2"
/* QEMU's pvpanic, configured to stop the machine: docs/specs/pvpanic.rst. */
#define PANIC_PORT 0x505
#define PANICKED 1

/* Size of the seed, which precedes the archive in the inbox. */
#define SEED_BYTES 8

/* Interval, in ns, at which the inbox is checked for an archive. An archive begins with a digit, an
 * empty inbox with zeros. */
#define POLL_NS 1000000

/* Offsets of the used fields of a newc header, each of eight hexadecimal digits: see cpio(5). */
#define HEADER_BYTES 110
#define FIELD(n) (6 + 8 * (n))
#define MODE FIELD(1)
#define FILE_SIZE FIELD(6)
#define NAME_SIZE FIELD(11)
#define LAST "TRAILER!!!"

/* Maximum delay of a resumed guest: two ticks with HZ=250. */
#define DELAY_MAX_NS 8000000

static void die(const char *what)
{
	fprintf(stderr, "scx_resume: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long read_hex(const char *path)
{
	unsigned long value = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		return 0;
	if (fscanf(file, "%lx", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

/* Map the memory of a PCI device, if it is an inbox. */
static const char *map_device(const char *name, size_t *size)
{
	char path[512], id[32];
	unsigned long vendor, device;
	struct stat stat;
	void *memory;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", name);
	vendor = read_hex(path);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", name);
	device = read_hex(path);
	snprintf(id, sizeof(id), "%04lx:%04lx", vendor, device);
	if (strcmp(id, INBOX_ID))
		return NULL;
	/* The memory of a device is accessible only after the device has been enabled. */
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/enable", name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "1", 1) != 1)
		die(path);
	close(fd);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/" INBOX_BAR, name);
	fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &stat))
		die(path);
	*size = stat.st_size;
	memory = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		die(path);
	close(fd);
	return memory;
}

static const char *map_inbox(size_t *size)
{
	const char *inbox = NULL;
	struct dirent *entry;
	DIR *devices = opendir("/sys/bus/pci/devices");

	if (!devices)
		return NULL;
	while (!inbox && (entry = readdir(devices)))
		if (entry->d_name[0] != '.')
			inbox = map_device(entry->d_name, size);
	closedir(devices);
	return inbox;
}

static void stop_machine(void)
{
	if (ioperm(PANIC_PORT, 1, 1))
		die("cannot stop the machine");
	outb(PANICKED, PANIC_PORT);
}

/* Wait for the archive, i.e. until the saved machine is resumed. */
static void await_archive(const volatile char *inbox)
{
	static const struct timespec interval = { .tv_nsec = POLL_NS };

	while (!inbox[SEED_BYTES])
		nanosleep(&interval, NULL);
}

static unsigned long field(const char *header, size_t at)
{
	char digits[9] = { 0 };

	memcpy(digits, header + at, 8);
	return strtoul(digits, NULL, 16);
}

static size_t padded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

static void write_file(const char *name, mode_t mode, const char *data, size_t size)
{
	ssize_t written;
	int fd;

	/* Do not overwrite an old file: processes may use it, for example as a library. */
	unlink(name);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		die(name);
	for (; size; data += written, size -= written) {
		written = write(fd, data, size);
		if (written <= 0)
			die(name);
	}
	if (fchmod(fd, mode) || close(fd))
		die(name);
}

static void make_link(const char *name, const char *data, size_t size)
{
	char *target = strndup(data, size);

	unlink(name);
	if (!target || symlink(target, name))
		die(name);
	free(target);
}

static void make_entry(const char *name, mode_t mode, const char *data, size_t size)
{
	if (S_ISREG(mode))
		write_file(name, mode & 07777, data, size);
	else if (S_ISLNK(mode))
		make_link(name, data, size);
	else if (S_ISDIR(mode) && mkdir(name, mode & 07777) && errno != EEXIST)
		die(name);
}

static void unpack(const char *archive, size_t size)
{
	const char *end = archive + size, *name, *data;
	size_t data_size;

	while (archive + HEADER_BYTES <= end && !memcmp(archive, "070701", 6)) {
		name = archive + HEADER_BYTES;
		data = archive + padded(HEADER_BYTES + field(archive, NAME_SIZE));
		data_size = field(archive, FILE_SIZE);
		if (data + data_size > end)
			break;
		if (!strcmp(name, LAST))
			return;
		make_entry(name, field(archive, MODE), data, data_size);
		archive = data + padded(data_size);
	}
	fprintf(stderr, "scx_resume: the inbox holds no archive\n");
	exit(1);
}

/* splitmix64, which gives unrelated numbers for similar seeds. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static void seed_kernel(uint64_t *state)
{
	uint64_t noise[4];
	unsigned int i;
	int fd = open("/dev/urandom", O_WRONLY);

	for (i = 0; i < 4; i++)
		noise[i] = next_random(state);
	if (fd < 0 || write(fd, noise, sizeof(noise)) != sizeof(noise) || ioctl(fd, RNDRESEEDCRNG))
		die("/dev/urandom");
	close(fd);
}

/* Delay the guest, on a CPU that depends on the seed, so that guests with different seeds resume at
 * different times between ticks, and on different CPUs. */
static void differ(uint64_t *state)
{
	struct timespec delay = { .tv_nsec = next_random(state) % DELAY_MAX_NS };
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t here, everywhere;

	if (sched_getaffinity(0, sizeof(everywhere), &everywhere))
		die("affinity");
	CPU_ZERO(&here);
	CPU_SET(next_random(state) % nr_cpus, &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		die("affinity");
	nanosleep(&delay, NULL);
	if (sched_setaffinity(0, sizeof(everywhere), &everywhere))
		die("affinity");
}

int main(int argc, char **argv)
{
	size_t size = 0;
	const char *inbox = map_inbox(&size);
	uint64_t seed;

	if (!inbox)
		return 0;
	if (argc > 1 && !strcmp(argv[1], "--stop")) {
		stop_machine();
		for (;;)
			pause();
	}
	if (chdir("/"))
		die("/");
	stop_machine();
	await_archive(inbox);
	memcpy(&seed, inbox, SEED_BYTES);
	unpack(inbox + SEED_BYTES, size - SEED_BYTES);
	if (seed) {
		seed_kernel(&seed);
		differ(&seed);
	}
	return 0;
}
