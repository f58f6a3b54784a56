// SPDX-License-Identifier: GPL-2.0-only
/*
 * scx_bus_proxy SOCKET BUS: connects clients of SOCKET with the message bus at BUS. There is one
 * process for each client. On SIGUSR1, this process sends its client a message with an unknown
 * header field, which the D-Bus specification requires clients to ignore. The message does not come
 * from the bus, because some message buses do not forward such messages.
 */
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A little-endian method call without a body. It has the path "/", the member "X", and the unknown
 * field 99. */
static const char message[] = "l\1\1\1\0\0\0\0\1\0\0\0\52\0\0\0"
			      "\1\1o\0\1\0\0\0/\0\0\0\0\0\0\0"
			      "\3\1s\0\1\0\0\0X\0\0\0\0\0\0\0"
			      "\143\1s\0\1\0\0\0x\0\0\0\0\0\0\0";

static volatile sig_atomic_t is_asked;

static void on_usr1(int number)
{
	is_asked = number;
}

static int new_socket(const char *path, struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	addr->sun_family = AF_UNIX;
	snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path);
	return fd;
}

/* Forward what one recv() returns. Return false if one of the connections has ended. */
static bool pass(int from, int to)
{
	char data[4096];
	ssize_t len = recv(from, data, sizeof(data), 0);

	return len > 0 && send(to, data, len, MSG_NOSIGNAL) == len;
}

static void serve(int client, const char *bus_path)
{
	struct sockaddr_un addr;
	int bus = new_socket(bus_path, &addr);
	struct pollfd fds[] = { { .fd = client, .events = POLLIN },
				{ .fd = bus, .events = POLLIN } };

	if (connect(bus, (struct sockaddr *)&addr, sizeof(addr)))
		err(1, "%s", bus_path);
	for (;;) {
		if (is_asked && send(client, message, sizeof(message) - 1, MSG_NOSIGNAL) > 0)
			is_asked = 0;
		/* A signal makes poll() fail. A signal that arrives just before poll() takes effect
		 * within a second. */
		if (poll(fds, 2, 1000) <= 0)
			continue;
		if ((fds[0].revents && !pass(client, bus)) ||
		    (fds[1].revents && !pass(bus, client)))
			return;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr;
	int fd;

	if (argc != 3)
		errx(1, "usage: scx_bus_proxy SOCKET BUS");
	signal(SIGUSR1, SIG_IGN);
	fd = new_socket(argv[1], &addr);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 8))
		err(1, "%s", argv[1]);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client >= 0 && !fork()) {
			signal(SIGUSR1, on_usr1);
			serve(client, argv[2]);
			return 0;
		}
		if (client >= 0)
			close(client);
	}
}
