// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of the statistics server that shares no code with the server. Requests and answers are
 * lines of JSON over a Unix socket. The client can also misbehave in several ways.
 *
 *   scx_stats_client PATH ask LINE...    send each line, print the answer
 *   scx_stats_client PATH pass           the same with lines of standard input, as they arrive
 *   scx_stats_client PATH garbage COUNT  send lines of random bytes, print the number of answers
 *   scx_stats_client PATH long BYTES     send one line of this length, print the answer, and
 *                                        whether the server hangs up
 *   scx_stats_client PATH half           send half a request, print whether the server hangs up
 *   scx_stats_client PATH idle COUNT     hold this many connections until killed; fail if the
 *                                        server closes one of them
 *   scx_stats_client PATH deaf           send requests, but read no answers, until the server hangs
 *                                        up; print the number of requests
 *
 * The exit status is 1 if the connection fails, or if the server neither answers nor hangs up
 * within TIMEOUT_MS.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A guest may run a hundred times slower than a real machine. */
#define TIMEOUT_MS 120000

#define REQUEST "{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n"

static const char *path;

static int try_connect(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		err(1, "%s", path);
	return fd;
}

static void send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);

		if (sent < 0)
			err(1, "send");
		data += sent;
		len -= sent;
	}
}

/* Return the next line with its newline. If the connection ends before the newline, return what the
 * server has sent of the line, usually an empty string. */
static const char *receive_line(int fd)
{
	static char *line;
	static size_t size;
	size_t len = 0;

	do {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t got;

		if (len + 2 > size)
			line = realloc(line, size = size * 2 + 4096);
		if (!line)
			err(1, "memory");
		if (poll(&ready, 1, TIMEOUT_MS) <= 0)
			errx(1, "no answer");
		/* Read byte by byte, because further data belongs to the next line. */
		got = recv(fd, line + len, 1, 0);
		if (got <= 0)
			break;
		len++;
	} while (line[len - 1] != '\n');
	line[len] = '\0';
	return line;
}

static void ask(char **lines)
{
	int fd = try_connect();

	for (; *lines; lines++) {
		send_all(fd, *lines, strlen(*lines));
		send_all(fd, "\n", 1);
		fputs(receive_line(fd), stdout);
	}
}

static void pass(void)
{
	int fd = try_connect();
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		send_all(fd, line, strlen(line));
		fputs(receive_line(fd), stdout);
	}
}

static void garbage(int count)
{
	int fd = try_connect(), answered = 0;

	srand(1);
	for (int i = 0; i < count; i++) {
		char line[200];
		size_t len = 1 + rand() % (sizeof(line) - 1);

		for (size_t k = 0; k < len; k++)
			line[k] = rand();
		/* A newline within the line would make it two lines, each of which is answered. */
		for (size_t k = 0; k < len; k++)
			line[k] = line[k] == '\n' ? ' ' : line[k];
		line[len - 1] = '\n';
		send_all(fd, line, len);
		answered += strstr(receive_line(fd), "\"errno\"") != NULL;
	}
	printf("%d answered\n", answered);
}

static void send_long(size_t bytes)
{
	char *line = malloc(bytes);
	int fd = try_connect();

	if (!line)
		err(1, "memory");
	memset(line, 'x', bytes);
	line[bytes - 1] = '\n';
	/* The server may stop reading before the end of the line. */
	for (size_t sent = 0; sent < bytes;) {
		ssize_t now = send(fd, line + sent, bytes - sent, MSG_NOSIGNAL);

		if (now < 0)
			break;
		sent += now;
	}
	fputs(receive_line(fd), stdout);
	puts(*receive_line(fd) ? "goes on" : "hung up");
	free(line);
}

static void half(void)
{
	int fd = try_connect();

	send_all(fd, REQUEST, strlen(REQUEST) / 2);
	puts(*receive_line(fd) ? "answered" : "hung up");
}

static void idle(int count)
{
	struct pollfd *connections = calloc(count, sizeof(*connections));

	if (!connections)
		err(1, "calloc");
	for (int i = 0; i < count; i++)
		connections[i] = (struct pollfd){ .fd = try_connect(), .events = POLLIN };
	printf("%d open\n", count);
	fflush(stdout);
	poll(connections, count, -1);
	errx(1, "the server has closed an idle connection, or written to it");
}

static void deaf(void)
{
	int fd = try_connect();
	long sent = 0;

	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLOUT };

		if (poll(&ready, 1, TIMEOUT_MS) <= 0)
			errx(1, "the server keeps a client that never reads");
		if (send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) < 0)
			break;
		sent++;
	}
	printf("hung up after %ld requests\n", sent);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[2] : "";

	if (argc > 1)
		path = argv[1];
	if (!strcmp(verb, "ask"))
		ask(argv + 3);
	else if (!strcmp(verb, "pass"))
		pass();
	else if (!strcmp(verb, "garbage") && argc == 4)
		garbage(atoi(argv[3]));
	else if (!strcmp(verb, "long") && argc == 4)
		send_long(atol(argv[3]));
	else if (!strcmp(verb, "half"))
		half();
	else if (!strcmp(verb, "idle") && argc == 4)
		idle(atoi(argv[3]));
	else if (!strcmp(verb, "deaf"))
		deaf();
	else
		errx(1, "usage: scx_stats_client PATH ask|pass|garbage|long|half|idle|deaf "
			"[ARGUMENT...]");
	return 0;
}
