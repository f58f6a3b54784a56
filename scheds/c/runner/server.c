// SPDX-License-Identifier: GPL-2.0-only
/*
 * Serves statistics on a socket, for scxstats, scxctl and monitors. The main thread serves all
 * clients while it waits, and never blocks on a client. It reads nothing from a client that has an
 * answer pending, so that the memory for the requests and answers of each client is bounded.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

/* The same values as in rust/scx_stats. */
#define SOCKET_DIR "/var/run/scx/root"
#define SOCKET_PATH SOCKET_DIR "/stats"
#define LINE_MAX_BYTES (64 * 1024)
#define CLIENTS_MAX 512
#define CLIENT_TIMEOUT_S 10.0

struct client {
	char *in; /* in_len received bytes of requests that are not answered yet */
	size_t in_len;
	size_t in_size;
	char *out; /* an answer of out_len bytes, of which out_sent are sent; NULL: none */
	size_t out_len;
	size_t out_sent;
	bool closing; /* close the connection after the answer */
	double moved_s; /* when the request in @in began, or the answer last made progress */
	double heard_s; /* when the client last sent data, or connected */
	uint64_t before[SCX_STATS_MAX_BYTES / sizeof(uint64_t)]; /* see scx_answer() */
};

struct scx_server {
	const struct scx_sched *sched;
	void *skel; /* NULL between generations */
	struct stat file; /* the file of the socket */
	size_t nr; /* number of clients */
	/* Both arrays are indexed by the enum below. Each index from FIRST_CLIENT on is that of a
	 * client. */
	struct pollfd fds[CLIENTS_MAX + 3];
	struct client *clients[CLIENTS_MAX + 3];
};

enum {
	SIGNALS,
	WAKE, /* the scheduler's wake_fd() */
	LISTENER, /* the socket */
	FIRST_CLIENT,
};

/* Read the current values into @values and return @values, or NULL between generations. */
static const void *read_now(const struct scx_server *server, uint64_t *values)
{
	memset(values, 0, SCX_STATS_MAX_BYTES);
	if (!server->skel)
		return NULL;
	server->sched->read_stats(server->skel, values);
	return values;
}

static void close_client(struct scx_server *server, size_t at)
{
	size_t last = FIRST_CLIENT + --server->nr;
	struct client *client = server->clients[at];

	close(server->fds[at].fd);
	free(client->in);
	free(client->out);
	free(client);
	server->clients[at] = server->clients[last];
	server->fds[at] = server->fds[last];
}

static void close_most_silent(struct scx_server *server)
{
	size_t silent = FIRST_CLIENT;

	for (size_t at = FIRST_CLIENT; at < FIRST_CLIENT + server->nr; at++)
		if (server->clients[at]->heard_s < server->clients[silent]->heard_s)
			silent = at;
	if (server->nr)
		close_client(server, silent);
}

static void accept_client(struct scx_server *server)
{
	struct client *client;
	int fd;

	if (server->nr == CLIENTS_MAX)
		close_most_silent(server);
	fd = accept4(server->fds[LISTENER].fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/* Close a client to free a descriptor and memory. If there is no client, ignore new
		 * clients until the next scx_server_wait(). Otherwise poll() would not sleep. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
			if (!server->nr)
				server->fds[LISTENER].events = 0;
			close_most_silent(server);
		}
		return;
	}
	client = calloc(1, sizeof(*client));
	if (!client) {
		close(fd);
		return;
	}
	client->moved_s = client->heard_s = scx_now_s();
	read_now(server, client->before);
	server->clients[FIRST_CLIENT + server->nr] = client;
	server->fds[FIRST_CLIENT + server->nr++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Read more of the client's requests. Returns false if the connection is to be closed. */
static bool receive(struct client *client, int fd)
{
	ssize_t len;

	if (client->in_len == client->in_size) {
		size_t size = client->in_size ? 2 * client->in_size : 1024;
		char *in = realloc(client->in, size);

		if (!in)
			return false;
		client->in = in;
		client->in_size = size;
	}
	len = recv(fd, client->in + client->in_len, client->in_size - client->in_len, 0);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR;
	if (len)
		client->heard_s = scx_now_s();
	/* Further parts of a request do not extend its time limit. */
	if (!client->in_len)
		client->moved_s = client->heard_s;
	client->in_len += len;
	return len;
}

/* Send what the socket accepts of the answer. Returns false if the connection is to be closed. */
static bool flush(struct client *client, int fd)
{
	while (client->out_sent < client->out_len) {
		/* No SIGPIPE if the client has gone. */
		ssize_t sent = send(fd, client->out + client->out_sent,
				    client->out_len - client->out_sent, MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		client->out_sent += sent;
		client->moved_s = scx_now_s();
	}
	free(client->out);
	client->out = NULL;
	return !client->closing;
}

/* Answer the first complete request, or reject a line that is too long. Returns false if there is
 * no such line, or no memory. */
static bool answer_next(struct scx_server *server, struct client *client)
{
	uint64_t values[SCX_STATS_MAX_BYTES / sizeof(uint64_t)];
	char *end = client->in_len ? memchr(client->in, '\n', client->in_len) : NULL;

	if (end && end - client->in <= LINE_MAX_BYTES) {
		client->out = scx_answer(server->sched, client->in, end - client->in,
					 read_now(server, values), client->before);
		client->in_len -= end + 1 - client->in;
		memmove(client->in, end + 1, client->in_len);
		/* Without memory for an answer, close the connection. */
		client->closing |= !client->out;
	} else if (client->in_len > LINE_MAX_BYTES) {
		client->out = scx_answer_too_long();
		client->closing = true;
	}
	if (!client->out)
		return false;
	client->out_len = strlen(client->out);
	client->out_sent = 0;
	client->moved_s = scx_now_s();
	return true;
}

/* Serve a client whose socket is ready. Returns false if the connection is to be closed. */
static bool serve(struct scx_server *server, size_t at)
{
	struct client *client = server->clients[at];
	struct pollfd *fd = &server->fds[at];

	if (client->out) {
		if (!flush(client, fd->fd))
			return false;
	} else if (!receive(client, fd->fd)) {
		return false;
	}
	while (!client->out && answer_next(server, client)) {
		if (!flush(client, fd->fd))
			return false;
	}
	fd->events = client->out ? POLLOUT : POLLIN;
	return client->out || !client->closing;
}

/* Whether a client has left its request incomplete, or its answer unread, for too long. */
static bool is_stuck(const struct client *client)
{
	return (client->out || client->in_len) && scx_now_s() - client->moved_s > CLIENT_TIMEOUT_S;
}

bool scx_server_wait(struct scx_server *server, double wait_s)
{
	double end_s = scx_now_s() + wait_s, left_s = wait_s;

	server->fds[LISTENER].events = POLLIN;
	for (; left_s >= 0; left_s = end_s - scx_now_s()) {
		int timeout_ms = left_s > 0 ? left_s * 1000 + 1 : 0;

		if (poll(server->fds, FIRST_CLIENT + server->nr, timeout_ms) < 0)
			continue;
		if (server->fds[SIGNALS].revents)
			return true;
		/* The loop runs backwards, because the last client takes the place of a client that
		 * is closed. */
		for (size_t at = FIRST_CLIENT + server->nr; at-- > FIRST_CLIENT;) {
			if ((server->fds[at].revents && !serve(server, at)) ||
			    is_stuck(server->clients[at]))
				close_client(server, at);
		}
		if (server->fds[LISTENER].revents)
			accept_client(server);
		if (server->fds[WAKE].revents)
			return false;
	}
	return false;
}

/* Bind to a temporary name and rename it. So a client finds either the socket of the previous
 * scheduler, or a socket that already listens and has its final mode. */
static int bind_and_listen(int fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), SOCKET_DIR "/.%x", (unsigned int)getpid());
	if (unlink(addr.sun_path) && errno != ENOENT)
		return -1;
	/* The file inherits the mode of the socket. */
	if (fchmod(fd, 0600) || bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return -1;
	if (!chmod(addr.sun_path, 0600) && !listen(fd, SOMAXCONN) &&
	    !rename(addr.sun_path, SOCKET_PATH))
		return 0;
	unlink(addr.sun_path);
	return -1;
}

/* Open the listening socket and set @file to the status of its file. Returns the file descriptor,
 * or -1 with errno set. */
static int open_socket(struct stat *file)
{
	int fd, err;

	if ((mkdir("/var/run/scx", 0755) && errno != EEXIST) ||
	    (mkdir(SOCKET_DIR, 0755) && errno != EEXIST))
		return -1;
	if (!lstat(SOCKET_PATH, file) && !S_ISSOCK(file->st_mode)) {
		errno = EEXIST;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (!bind_and_listen(fd) && !lstat(SOCKET_PATH, file))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

struct scx_server *scx_server_start(const struct scx_sched *sched, int signal_fd)
{
	struct scx_server *server = calloc(1, sizeof(*server));

	if (!server)
		return NULL;
	server->sched = sched;
	server->fds[SIGNALS] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
	server->fds[WAKE] = (struct pollfd){ .fd = -1, .events = POLLIN };
	server->fds[LISTENER] = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (!sched->stats)
		return server;
	server->fds[LISTENER].fd = open_socket(&server->file);
	if (server->fds[LISTENER].fd < 0)
		fprintf(stderr, "%s: no statistics for other programs: %s: %s\n", sched->name,
			SOCKET_PATH, strerror(errno));
	return server;
}

void scx_server_set_skel(struct scx_server *server, void *skel)
{
	const struct scx_sched *sched = server->sched;

	server->skel = skel;
	server->fds[WAKE].fd = skel && sched->wake_fd ? sched->wake_fd(skel) : -1;
}

void scx_server_stop(struct scx_server *server)
{
	struct stat now;

	while (server->nr)
		close_client(server, FIRST_CLIENT);
	if (server->fds[LISTENER].fd >= 0) {
		/* Another scheduler may have put its own file there. */
		if (!lstat(SOCKET_PATH, &now) && now.st_ino == server->file.st_ino &&
		    now.st_dev == server->file.st_dev)
			unlink(SOCKET_PATH);
		close(server->fds[LISTENER].fd);
	}
	free(server);
}
