/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs of the work queue: files of a folder, or lines of a pipe that become files.
 *
 * A job's file has lines as kind=training, size=4G, and command=..., which sh runs as the file's
 * owner.  Files whose names begin with '.' do not count: write such a one, and rename it.  A job
 * that has ended is moved to the folder done or failed beside it, with its output in NAME.log.
 */
#ifndef AGENT_JOBS_H
#define AGENT_JOBS_H

#include <sys/types.h>

#include "hold.h"

#define JOB_COMMAND	4096

/**
 * struct job - a job
 * @name: name of its file
 * @uid: owner
 * @gid: the owner's group
 * @wish: what it needs
 * @command: for sh
 */
struct job {
	char name[256];
	uid_t uid;
	gid_t gid;
	struct wish wish;
	char command[JOB_COMMAND];
};

/**
 * struct jobs - the queue
 * @folder: folder of the files
 * @done: its folder of jobs that succeeded, and of logs
 * @failed: its folder of the others
 * @path: its name
 * @pipe: descriptor of the pipe whose lines become files, -1: none
 * @owner: owner of the pipe
 * @group: group of the pipe
 * @line: what was read of a line
 * @have: bytes of it
 * @skip: the rest of a line that is too long is dropped
 * @watch: inotify descriptor, -1: none
 * @nr: files that were made of lines
 */
struct jobs {
	int folder;
	int done;
	int failed;
	char path[2 * CONF_PATH_MAX];
	int pipe;
	uid_t owner;
	gid_t group;
	char line[JOB_COMMAND + 512];
	size_t have;
	bool skip;
	int watch;
	unsigned int nr;
};

/* Open the queue. Return 0 or -1; complains. */
int jobs_open(struct jobs *jobs, const struct conf *conf);
void jobs_close(struct jobs *jobs);
/* Take what came, and say when to look again: both descriptors may be polled. */
void jobs_drain(struct jobs *jobs);
/* Find the oldest job, false: none; those that cannot be run are moved to failed. */
bool jobs_next(struct jobs *jobs, struct job *job);
/* Start a job. Return 0 or -1; complains. */
int jobs_start(struct jobs *jobs, const struct job *job, const struct hold *h, pid_t *pid);
/* Move a job to done or failed. */
void jobs_end(struct jobs *jobs, const char *name, bool done);

/* Read a job's text. Return 0 or -EINVAL with a sentence. */
int job_parse(char *text, struct job *job, char *why);
/* Make a job's text of a line: NAME=VALUE words, then command= and the rest; false: no room. */
bool job_of_line(const char *line, char *text, size_t size);

#endif /* AGENT_JOBS_H */
