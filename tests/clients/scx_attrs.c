/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_attrs: sets scheduling attributes that the tools in guests cannot set.
 *
 * scx_attrs ext: prints "ready", waits for SIGUSR1, and requests the policy SCHED_EXT. Prints 0 or
 * the errno.
 * scx_attrs ext COMMAND...: runs the command with this policy.
 * scx_attrs core COMMAND...: runs the command with a core scheduling cookie of its own, so that no
 * task except its descendants runs on the same core at the same time.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Constants of uapi/linux/sched.h and uapi/linux/prctl.h, which installed headers may lack. */
#define SCHED_EXT_POLICY 7
#define CORE_SCHED 62
#define CORE_SCHED_CREATE 1
#define SCOPE_THREAD_GROUP 1

static int request_ext(void)
{
	const struct sched_param param = { 0 };
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	puts("ready");
	fflush(stdout);
	sigwait(&signals, &number);
	printf("%d\n", sched_setscheduler(0, SCHED_EXT_POLICY, &param) ? errno : 0);
	return 0;
}

int main(int argc, char **argv)
{
	const struct sched_param param = { 0 };

	if (argc == 2 && !strcmp(argv[1], "ext"))
		return request_ext();
	if (argc < 3 || (strcmp(argv[1], "ext") && strcmp(argv[1], "core"))) {
		fputs("usage: scx_attrs ext [COMMAND...] | core COMMAND...\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "ext") ?
		    sched_setscheduler(0, SCHED_EXT_POLICY, &param) :
		    prctl(CORE_SCHED, CORE_SCHED_CREATE, 0, SCOPE_THREAD_GROUP, 0)) {
		perror(argv[1]);
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
