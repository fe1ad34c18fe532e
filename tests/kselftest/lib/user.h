/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device of mgpu_user, and a small worker for its vGPUs.  The worker keeps resources in
 * its memory and moves bytes to and from the guest; it draws nothing.
 */
#ifndef KSELFTEST_USER_H
#define KSELFTEST_USER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/virtio_gpu.h>

#include "../../../include/uapi/linux/mgpu_user.h"

/**
 * struct user_dev - a device
 * @control: /dev/mgpu-user-control
 * @fd: file of @path that reads events
 * @id: N of /dev/mgpu-userN
 * @path: of the device
 * @parent: name of the parent of its vGPUs
 */
struct user_dev {
	int control;
	int fd;
	uint32_t id;
	char path[64];
	char parent[32];
};

#define USER_CAPSET		4	/* a protocol that the module does not know */

#define WORKER_RESOURCES	64
#define WORKER_BYTES		(1u << 20)	/* of a resource, at most */

/* How a worker behaves. */
enum worker_way {
	WORKER_FAIR,
	WORKER_AGREES,		/* does nothing, and says that all went well */
	WORKER_SILENT,		/* takes commands and answers none */
	WORKER_REFUSES,		/* answers each with an error */
	WORKER_STRANGER,	/* answers a command that there is not */
	WORKER_TWICE,		/* answers each twice */
	WORKER_NONSENSE,	/* answers with a type that is none */
	WORKER_AHEAD,		/* answers a fenced command before those before it */
	WORKER_FLOODS,		/* says that there are more answers than fit */
};

/**
 * struct worker_res - a resource
 * @id: number on the device, 0 for none
 * @mem: offset of its guest memory; 0 while it has none
 * @mem_len: bytes that can be mapped there
 * @map: the mapping, or NULL
 * @nr: number of entries
 * @at: offset of each entry in the memory
 * @len: its length
 * @bytes: contents
 * @host: contents of a blob of the host's memory
 * @host_len: its length, bytes
 */
struct worker_res {
	uint32_t id;
	uint64_t mem;
	uint64_t mem_len;
	uint8_t *map;
	uint32_t nr;
	uint64_t at[1024];
	uint32_t len[1024];
	uint8_t *bytes;
	uint8_t *host;
	size_t host_len;
};

/* How a worker executes RESOURCE_MAP_BLOB. */
enum worker_map {
	WORKER_MAPS,
	WORKER_MAPS_LESS,	/* a page less than the blob has */
	WORKER_MAPS_NOTHING,	/* and says that all went well */
	WORKER_MAPS_TWICE,
};

/**
 * struct worker - worker of a vGPU
 * @fd: its channel
 * @a: the channel's sizes
 * @ring: the rings
 * @cmds: commands
 * @answers: answers
 * @arena: bytes of commands
 * @way: enum worker_way
 * @busy_ns: what it says that each command took, nanoseconds
 * @pause_us: how long each command takes, microseconds
 * @hold_ring: ring whose next fence is not answered: a ring, HOLD_MORE once it is held, or
 *	HOLD_NONE to answer those that are
 * @held: numbers of commands that are not answered, since their fences are held
 * @nr_held: length of @held
 * @keep_turn: do not answer a turn
 * @turns: number of turns
 * @turn: the command of one that is not answered; TURN_NONE for none
 * @map: enum worker_map
 * @cache: of MGPU_USER_MAP
 * @map_error: errno of the last MGPU_USER_MAP, or 0
 * @bar: mapping of a VMM that the worker looks into, or NULL
 * @bar_seen: first byte there at the last RESOURCE_UNREF
 * @keep_maps: leave guest memory mapped that was detached
 * @export: called for a resource that was made and is to be exported; NULL for no export
 * @stop: end worker_run()
 * @seen: number of commands
 * @submits: number of streams
 * @notices: number of notices
 * @stream: the last stream
 * @stream_len: its length, bytes
 * @res: resources
 * @thread: for worker_begin()
 * @ret: what worker_run() returned
 */
struct worker {
	int fd;
	struct mgpu_user_attach a;
	struct mgpu_user_ring *ring;
	struct mgpu_user_cmd *cmds;
	struct mgpu_user_answer *answers;
	const uint8_t *arena;
	atomic_int way;
	atomic_ullong busy_ns;
	atomic_uint pause_us;
	atomic_bool keep_turn;
	atomic_uint turns;
#define TURN_NONE	UINT64_MAX
	atomic_ullong turn;
	atomic_int map;
	atomic_uint cache;
	atomic_int map_error;
#define HOLD_NONE	(-1)
#define HOLD_MORE	(-2)
	atomic_int hold_ring;
	uint32_t held[4];
	uint32_t nr_held;
	volatile const uint8_t *bar;
	atomic_int bar_seen;
	bool keep_maps;
	void (*export)(struct worker *w, const struct virtio_gpu_resource_create_3d *c);
	atomic_bool stop;
	atomic_uint seen, submits, notices;
	uint32_t stream[64];
	uint32_t stream_len;
	struct worker_res res[WORKER_RESOURCES];
	pthread_t thread;
	int ret;
};

/*
 * Make a device.  With MGPU_USER_CREATE_CONTEXT_INIT in @flags it has USER_CAPSET, too.
 */
int user_dev_new(struct user_dev *d, uint32_t flags, uint32_t engines, uint32_t depth,
		 uint32_t vgpu_depth);
/* The same below the PCI function @gpu, as in 0000:00:1f.2. */
int user_dev_new_on(struct user_dev *d, const char *gpu);
/* Close the files without removing the device. */
void user_dev_leave(struct user_dev *d);
int user_dev_delete(struct user_dev *d);
/* Read an event: 1, 0 when the device is gone, or -errno (-ETIMEDOUT). */
int user_event(struct user_dev *d, struct mgpu_user_event *e, int timeout_ms);

/* Attach a worker to a vGPU: 0 or -errno.  worker_close() gives up what it has. */
int worker_attach(struct worker *w, const struct user_dev *d, uint32_t vgpu);
void worker_close(struct worker *w);
/* Serve until @w->stop or an error of MGPU_USER_ENTER: 0 or -errno. */
int worker_run(struct worker *w);
/* The same in a thread; worker_end() stops it and returns what worker_run() did. */
int worker_begin(struct worker *w);
int worker_end(struct worker *w);
/* A worker of a process of its own, once it has attached; -errno. */
pid_t worker_fork(const struct user_dev *d, uint32_t vgpu);
int worker_enter(struct worker *w, uint32_t timeout_ms, uint32_t *ready);
/* Ask for a turn: 0 or -errno. */
int worker_turn(struct worker *w);
struct worker_res *worker_res(struct worker *w, uint32_t id);

#endif /* KSELFTEST_USER_H */
