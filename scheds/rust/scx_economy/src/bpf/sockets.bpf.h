/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages over Unix sockets. The receiving end of a connection has an account if it belongs to the
 * server, or in any case with --two-way. The sender pays before the message can be received. The
 * sender does not pay if the message cannot be sent at once, because one of the ends is shut down
 * or closed, or because the sender has to wait for room. So nothing has to be paid back, and no
 * program has to run after each send. If a send fails for another reason, such as an invalid
 * address or exhausted memory, the money stays in the account.
 *
 * Datagram sockets (SOCK_DGRAM) have no accounts.
 */
#ifndef __ECONOMY_SOCKETS_BPF_H
#define __ECONOMY_SOCKETS_BPF_H

#include "account.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff_head {
	u32 qlen;
};

struct sock_common {
	unsigned long skc_flags;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	atomic_t refs;
} refcount_t;

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	refcount_t sk_wmem_alloc;
	int sk_sndbuf;
	u8 sk_shutdown;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct socket {
	struct sock *sk;
};

#pragma clang attribute pop

/* include/net/sock.h: bit SOCK_DEAD of skc_flags, which is set when the socket is closed. */
#define SOCK_DEAD_BIT 1

/* include/linux/socket.h: the message is read, but stays in the queue. */
#define MSG_PEEK 2

/* include/net/sock.h: bits of sk_shutdown. */
#define RCV_SHUTDOWN 1
#define SEND_SHUTDOWN 2

/* net/unix/af_unix.c, unix_autobind(): length of an address that the kernel has chosen: the family,
 * a zero byte and five digits. */
#define AUTOBIND_LEN 8

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct economy_account);
} economy_sockets SEC(".maps");

/* Whether a program has given the socket a name. The server's end of a connection has the name of
 * the listening socket. The client's end usually has no name, or a name that the kernel has
 * chosen. */
static inline bool has_name(const struct unix_sock *sk)
{
	return sk->addr && (sk->addr->len != AUTOBIND_LEN || sk->addr->name[0].sun_path[0] != '\0');
}

/* Whether a message can be sent at once, by the same conditions as in unix_stream_sendmsg() and
 * sock_alloc_send_pskb(). sk_wmem_alloc is the number of allocated bytes plus one. */
static inline bool can_send(const struct sock *sk, const struct sock *peer)
{
	return !(sk->sk_shutdown & SEND_SHUTDOWN) && !(peer->sk_shutdown & RCV_SHUTDOWN) &&
	       !(peer->__sk_common.skc_flags & SOCK_DEAD_BIT) &&
	       sk->sk_wmem_alloc.refs.counter - 1 < sk->sk_sndbuf;
}

/* Whether messages that are sent from @own cost something. */
static inline bool has_price(const struct unix_sock *own)
{
	const struct unix_sock *peer;

	if (!config.both_ways && has_name(own))
		return false;
	peer = bpf_core_cast(own->peer, struct unix_sock);
	return peer && (config.both_ways || has_name(peer));
}

static inline int sends(struct socket *sock)
{
	struct economy_account *account;
	const struct unix_sock *own;
	struct sock *sk = sock->sk, *peer;
	struct payer payer = {};

	if (!sk || !has_price(bpf_core_cast(sk, struct unix_sock)))
		return 0;
	own = bpf_skc_to_unix_sock(sk);
	/* This end has a reference to the peer, which thus cannot be freed meanwhile. */
	peer = own ? own->peer : NULL;
	if (!peer)
		return 0;
	account = bpf_sk_storage_get(&economy_sockets, peer, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (account && account_has_room(account) && can_send(sk, peer) && can_pay(&payer))
		account_pay(account, &payer);
	return 0;
}

static inline int received(struct socket *sock, int flags, int ret)
{
	struct sock *sk = sock->sk;
	struct economy_account *account;

	if (!sk || ret <= 0 || flags & MSG_PEEK)
		return 0;
	if (!config.both_ways && !has_name(bpf_core_cast(sk, struct unix_sock)))
		return 0;
	account = bpf_sk_storage_get(&economy_sockets, sk, NULL, 0);
	if (account)
		account_withdraw(account, sk->sk_receive_queue.qlen);
	return 0;
}

/* received() withdraws nothing for an empty message, so its sender does not pay. */
SEC("fentry/unix_stream_sendmsg")
int BPF_PROG(economy_stream_send, struct socket *sock, void *msg, u64 len)
{
	return is_trading() && len ? sends(sock) : 0;
}

SEC("fexit/unix_stream_recvmsg")
int BPF_PROG(economy_stream_received, struct socket *sock, void *msg, u64 len, int flags, int ret)
{
	return is_trading() ? received(sock, flags, ret) : 0;
}

SEC("fentry/unix_seqpacket_sendmsg")
int BPF_PROG(economy_packet_send, struct socket *sock, void *msg, u64 len)
{
	return is_trading() && len ? sends(sock) : 0;
}

SEC("fexit/unix_seqpacket_recvmsg")
int BPF_PROG(economy_packet_received, struct socket *sock, void *msg, u64 len, int flags, int ret)
{
	return is_trading() ? received(sock, flags, ret) : 0;
}

/* Close the account of a socket, if it has one. The remaining money goes to the bank. */
static inline int closed(struct sock *sk)
{
	struct economy_account *account;

	account = sk ? bpf_sk_storage_get(&economy_sockets, sk, NULL, 0) : NULL;
	if (account)
		account_close(account);
	return 0;
}

SEC("fentry/unix_release")
int BPF_PROG(economy_closed, struct socket *sock)
{
	return closed(sock->sk);
}

/* Messages that are sent while the receiver closes its end may leave money in its account after
 * unix_release(). The kernel frees the account after this program has run. */
SEC("fentry/unix_sock_destructor")
int BPF_PROG(economy_freed, struct sock *sk)
{
	return closed(sk);
}

#endif /* __ECONOMY_SOCKETS_BPF_H */
