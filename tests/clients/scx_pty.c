// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command in a pseudo terminal: `scx_pty COMMAND [ARGS]`. Standard input is typed into the
 * terminal, and standard output is what the terminal displays. The terminal has 80 columns and 24
 * lines; SIGUSR1 resizes it to 132 columns and 50 lines. The exit status is that of the command, or
 * 128 + N if signal N has ended the command.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t resize;

static void on_resize(int number)
{
	resize = 1;
}

static void apply_resize(int terminal)
{
	struct winsize size = { .ws_row = 50, .ws_col = 132 };

	if (!resize)
		return;
	resize = 0;
	ioctl(terminal, TIOCSWINSZ, &size);
}

/* Copy what one read() returns. Return false at the end of @from, or on an error. */
static bool copy(int from, int to)
{
	char bytes[4096];
	ssize_t n = read(from, bytes, sizeof(bytes)), done = 0;

	while (done < n) {
		ssize_t wrote = write(to, bytes + done, n - done);

		if (wrote < 0 && errno != EINTR)
			return false;
		done += wrote > 0 ? wrote : 0;
	}
	return n > 0 || (n < 0 && errno == EINTR);
}

static void forward(int terminal)
{
	struct pollfd fds[] = {
		{ .fd = terminal, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	for (;;) {
		apply_resize(terminal);
		/* The time limit is needed because a signal may arrive right before poll(). */
		if (poll(fds, 2, 100) <= 0)
			continue;
		/* Copying from the terminal fails when the command has closed it. */
		if (fds[0].revents && !copy(terminal, STDOUT_FILENO))
			return;
		/* At the end of the input, go on without it: the command may still run. */
		if (fds[1].revents && !copy(STDIN_FILENO, terminal))
			fds[1].fd = -1;
	}
}

int main(int argc, char **argv)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int terminal, status;
	pid_t pid;

	if (argc < 2) {
		fputs("usage: scx_pty COMMAND [ARGS]\n", stderr);
		return 2;
	}
	pid = forkpty(&terminal, NULL, NULL, &size);
	if (pid < 0) {
		perror("scx_pty: forkpty");
		return 1;
	}
	if (!pid) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	signal(SIGUSR1, on_resize);
	forward(terminal);
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
