// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_agent: runs jobs and reads files for the host. ../protocol.py describes the messages; change
 * both sides together.
 *
 * It is a real-time task, so that loads delay neither the start of jobs nor the report of their
 * end. It is not a shell script, because a shell would start ten processes for each job, and one
 * for each read of a file that a test polls. Under emulation, a process takes several milliseconds.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS "/run/spawn"
#define PORTS "/sys/class/virtio-ports"
/* Requests of klogctl(); see syslog(2). */
#define SYSLOG_READ_ALL 3
#define SYSLOG_SIZE_BUFFER 10
/* Exit status of a job that cannot be started, as in a shell. */
#define CANNOT_START 127
#define CHUNK_BYTES 4096

struct bytes {
	char *data;
	size_t size, room;
};

struct job {
	struct job *next;
	pid_t pid;
	char name[];
};

static int control, data, stream;
static struct job *running_jobs;

static void die(const char *what)
{
	fprintf(stderr, "scx_agent: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void reserve(struct bytes *to, size_t size)
{
	if (to->room - to->size >= size)
		return;
	to->room = 2 * to->room + size;
	to->data = realloc(to->data, to->room);
	if (!to->data)
		die("memory");
}

/* Append what `fd` has at present, up to the given size. Returns the result of read(). */
static ssize_t append(struct bytes *to, int fd, size_t size)
{
	ssize_t got;

	reserve(to, size);
	got = read(fd, to->data + to->size, size);
	if (got > 0)
		to->size += got;
	return got;
}

static void write_all(int fd, const char *from, size_t size)
{
	ssize_t written;

	for (; size; from += written, size -= written) {
		written = write(fd, from, size);
		if (written < 0 && errno == EINTR)
			written = 0;
		else if (written <= 0)
			die("write");
	}
}

/* A message is a single write: new processes report their start themselves, at the same time as the
 * agent writes. */
__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
	char line[PATH_MAX];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	write_all(control, line, size);
}

static const char *job_file(const char *name, const char *file)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), JOBS "/%s/%s", name, file);
	return path;
}

static void forget(const char *name)
{
	unlink(job_file(name, "script"));
	unlink(job_file(name, "stdout"));
	unlink(job_file(name, "stderr"));
	rmdir(job_file(name, ""));
}

static off_t size_of(const char *name, const char *file)
{
	struct stat stat_of_file;

	return stat(job_file(name, file), &stat_of_file) ? 0 : stat_of_file.st_size;
}

static void report_end(const char *name, int status)
{
	report("ended %s %d %jd %jd\n", name, status, (intmax_t)size_of(name, "stdout"),
	       (intmax_t)size_of(name, "stderr"));
}

/* Open `path` as the descriptor `fd`. If this fails, the job's process exits. */
static void open_as(int fd, const char *path, int flags)
{
	int opened = open(path, flags, 0644);

	if (opened < 0 || dup2(opened, fd) < 0)
		_exit(CANNOT_START);
	if (opened != fd)
		close(opened);
}

static void set_policy(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	sched_setscheduler(0, policy, &param);
}

/* Change to an unprivileged user, as su(1) does. */
static void change_user(const char *name)
{
	const struct passwd *user = getpwnam(name);

	if (!user) {
		fprintf(stderr, "unknown user %s\n", name);
		_exit(CANNOT_START);
	}
	setenv("HOME", user->pw_dir, true);
	setenv("USER", name, true);
	setenv("LOGNAME", name, true);
	if (initgroups(name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid))
		_exit(CANNOT_START);
}

/* In the new process: become the job. The process is a real-time task until it has reported its
 * start. An urgent job remains a real-time task. */
static void become(const char *name, const char *output, const char *user)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* A separate session, so that the job can be signalled as a whole. */
	setsid();
	open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
	open_as(STDOUT_FILENO, job_file(name, "stdout"), O_WRONLY | O_CREAT | O_TRUNC);
	open_as(STDERR_FILENO, job_file(name, "stderr"), O_WRONLY | O_CREAT | O_TRUNC);
	if (!strcmp(output, "stream")) {
		dup2(stream, STDOUT_FILENO);
		dup2(stream, STDERR_FILENO);
	}
	if (strcmp(user, "root"))
		change_user(user);
	report("started %s %d\n", name, getpid());
	if (strcmp(output, "urgent"))
		set_policy(SCHED_OTHER, 0);
	execl("/bin/sh", "sh", job_file(name, "script"), NULL);
	_exit(CANNOT_START);
}

static bool is_octal(const char *digits)
{
	return strspn(digits, "01234567") >= 4;
}

/* Decode a script in place: replace each backslash, 0 and three octal digits by a byte. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && is_octal(text + 1)) {
			*to++ = (text[2] - '0') << 6 | (text[3] - '0') << 3 | (text[4] - '0');
			text += 4;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

static bool write_script(const char *name, char *script)
{
	FILE *file;

	unescape(script);
	file = fopen(job_file(name, "script"), "we");
	if (!file)
		return false;
	fputs(script, file);
	return !fclose(file);
}

/* start NAME OUTPUT USER SCRIPT */
static void start(char *rest)
{
	const char *name = strsep(&rest, " "), *output = strsep(&rest, " ");
	const char *user = strsep(&rest, " ");
	struct job *job;

	if (!rest)
		return;
	job = malloc(sizeof(*job) + strlen(name) + 1);
	if (!job)
		die("memory");
	strcpy(job->name, name);
	/* Remove the files of an earlier job of this name. Its descendants may still use them. */
	forget(name);
	if (mkdir(job_file(name, ""), 0755) || !write_script(name, rest) ||
	    (job->pid = fork()) < 0) {
		report_end(name, CANNOT_START);
		free(job);
		return;
	}
	if (!job->pid)
		become(name, output, user);
	job->next = running_jobs;
	running_jobs = job;
}

static struct job *take_job(pid_t pid)
{
	struct job **at, *job;

	for (at = &running_jobs; (job = *at); at = &job->next) {
		if (job->pid == pid) {
			*at = job->next;
			return job;
		}
	}
	return NULL;
}

static void reap(void)
{
	struct job *job;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		job = take_job(pid);
		if (!job)
			continue;
		report_end(job->name,
			   WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
		free(job);
	}
}

static void append_file(struct bytes *to, const char *path, size_t limit)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t end = limit < SIZE_MAX - to->size ? to->size + limit : SIZE_MAX;

	if (fd < 0)
		return;
	while (to->size < end) {
		size_t size = end - to->size < CHUNK_BYTES ? end - to->size : CHUNK_BYTES;

		if (append(to, fd, size) <= 0)
			break;
	}
	close(fd);
}

/* fetch NAME STDOUT_BYTES STDERR_BYTES: send the output of a job that has ended, and forget the
 * job. Descendants of the job may still write to the files, so send no more than the sizes that
 * were reported at the end of the job. */
static void fetch(char *rest)
{
	const char *name = strsep(&rest, " ");
	struct bytes found = { 0 };
	size_t nr_stdout, nr_stderr;

	if (!rest || sscanf(rest, "%zu %zu", &nr_stdout, &nr_stderr) != 2)
		return;
	append_file(&found, job_file(name, "stdout"), nr_stdout);
	append_file(&found, job_file(name, "stderr"), nr_stderr);
	write_all(data, found.data, found.size);
	free(found.data);
	forget(name);
}

/* read NAME PATTERN: send the contents of all files that match. */
static void read_files(char *rest)
{
	const char *name = strsep(&rest, " ");
	struct bytes found = { 0 };
	glob_t files = { 0 };
	size_t i;

	if (!rest)
		return;
	if (!glob(rest, 0, NULL, &files))
		for (i = 0; i < files.gl_pathc; i++)
			append_file(&found, files.gl_pathv[i], SIZE_MAX);
	write_all(data, found.data, found.size);
	report("ended %s %d %zu 0\n", name, !files.gl_pathc, found.size);
	globfree(&files);
	free(found.data);
}

/* log NAME: send the kernel's log buffer. */
static void read_log(const char *name)
{
	struct bytes found = { 0 };
	int size = klogctl(SYSLOG_SIZE_BUFFER, NULL, 0);

	if (size < 0)
		die("kernel log");
	reserve(&found, size);
	size = klogctl(SYSLOG_READ_ALL, found.data, size);
	if (size < 0)
		die("kernel log");
	write_all(data, found.data, size);
	report("ended %s 0 %d 0\n", name, size);
	free(found.data);
}

/* signal PID SIGNAL: a negative PID means a process group. */
static void send_signal(const char *rest)
{
	int pid, number;

	if (sscanf(rest, "%d %d", &pid, &number) == 2)
		kill(pid, number);
}

/* Returns whether the agent continues. */
static bool serve(char *request)
{
	const char *verb = strsep(&request, " ");

	if (!strcmp(verb, "poweroff"))
		return false;
	if (!strcmp(verb, "ping"))
		report("pong\n");
	else if (!request)
		fprintf(stderr, "scx_agent: bad request: %s\n", verb);
	else if (!strcmp(verb, "start"))
		start(request);
	else if (!strcmp(verb, "signal"))
		send_signal(request);
	else if (!strcmp(verb, "fetch"))
		fetch(request);
	else if (!strcmp(verb, "forget"))
		forget(request);
	else if (!strcmp(verb, "read"))
		read_files(request);
	else if (!strcmp(verb, "log"))
		read_log(request);
	return true;
}

/* Serve all complete lines. Returns whether the agent continues. */
static bool serve_lines(struct bytes *received)
{
	char *line = received->data, *end = line + received->size, *newline;

	for (; (newline = memchr(line, '\n', end - line)); line = newline + 1) {
		*newline = 0;
		if (!serve(line))
			return false;
	}
	received->size = end - line;
	memmove(received->data, line, received->size);
	return true;
}

/* Open the virtio-serial port called `name`. Returns its descriptor, or -1 with errno. */
static int open_port(const char *name, int flags)
{
	DIR *ports = opendir(PORTS);
	struct dirent *entry;
	char path[PATH_MAX];
	struct bytes found = { 0 };

	while (ports && (entry = readdir(ports))) {
		found.size = 0;
		snprintf(path, sizeof(path), PORTS "/%s/name", entry->d_name);
		append_file(&found, path, CHUNK_BYTES);
		if (found.size == strlen(name) + 1 && !memcmp(found.data, name, strlen(name))) {
			snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
			closedir(ports);
			free(found.data);
			return open(path, flags | O_CLOEXEC);
		}
	}
	errno = ENODEV;
	return -1;
}

static int watch_children(void)
{
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	return signalfd(-1, &children, SFD_CLOEXEC);
}

int main(void)
{
	struct pollfd events[] = { { .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo signal_info;
	struct bytes received = { 0 };

	control = events[0].fd = open_port("scx.control", O_RDWR);
	data = open_port("scx.data", O_WRONLY);
	stream = open_port("scx.stream", O_WRONLY);
	events[1].fd = watch_children();
	if (control < 0 || data < 0 || stream < 0 || events[1].fd < 0)
		die("ports");
	if ((mkdir(JOBS, 0755) && errno != EEXIST) || chdir("/tmp"))
		die("directories");
	set_policy(SCHED_FIFO, 1);
	report("ready\n");
	while (poll(events, 2, -1) > 0 || errno == EINTR) {
		if (events[1].revents && read(events[1].fd, &signal_info, sizeof(signal_info)) > 0)
			reap();
		if (events[0].revents &&
		    (append(&received, control, CHUNK_BYTES) <= 0 || !serve_lines(&received)))
			break;
	}
	return 0;
}
