/* SPDX-License-Identifier: GPL-2.0-only */
/* A transport carries the bytes between a front end and its server: a socket, or a vGPU. */
#ifndef REMOTE_TRANSPORT_H
#define REMOTE_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct transport;

/**
 * struct transport_ops - a kind of transport
 * @send: send up to @len bytes, at least one; called by one thread at a time.  Return their number,
 *	or -1 with errno.
 * @send_file: the same, with a file for the server; NULL if files cannot be sent
 * @receive: wait for bytes, and receive up to @len of them; called by one thread at a time, also
 *	while another one sends.  Return their number, 0 if the server has ended, or -1 with errno.
 * @shut: end the connection: threads that send or receive return soon.  Called by any thread.
 * @close: free what the process has of it, without a word to the server: a child process of the
 *	program calls it, too, while the parent goes on.
 */
struct transport_ops {
	ssize_t (*send)(struct transport *t, const void *p, size_t len);
	ssize_t (*send_file)(struct transport *t, const void *p, size_t len, int file);
	ssize_t (*receive)(struct transport *t, void *p, size_t len);
	void (*shut)(struct transport *t);
	void (*close)(struct transport *t);
};

/**
 * struct transport - a connection; the first member of what a kind has
 * @ops: its kind
 */
struct transport {
	const struct transport_ops *ops;
};

/**
 * transport_socket() - use a connected socket
 * @fd: the socket, which is the transport's from now on
 *
 * Return: the transport, or NULL without memory, when the socket is closed.
 */
struct transport *transport_socket(int fd);

/**
 * transport_unix() - connect to a Unix socket
 * @t: result
 * @path: its name
 *
 * Return: 0 or a negative errno.
 */
int transport_unix(struct transport **t, const char *path);

/**
 * transport_vsock() - connect to a socket of another machine, as of a VM's host
 * @t: result
 * @where: its CID and its port, CID:PORT
 *
 * Return: 0 or a negative errno.
 */
int transport_vsock(struct transport **t, const char *where);

/**
 * transport_vgpu() - make a context of a vGPU
 * @t: result
 * @node: render node, or NULL for the first vGPU that has remoted OpenCL
 *
 * Return: 0, or a negative errno: there is no such node (-ENOENT), or the vGPU has no remoted
 * OpenCL (-EOPNOTSUPP).
 */
int transport_vgpu(struct transport **t, const char *node);

#endif /* REMOTE_TRANSPORT_H */
