// SPDX-License-Identifier: GPL-2.0-only
/* Jobs of the work queue. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "complain.h"
#include "jobs.h"
#include "lines.h"

/* ---- texts ---- */

static int take_line(void *arg, const char *name, const char *value, char *why)
{
	struct job *job = arg;
	int ret;

	if (!strcmp(name, "command")) {
		if (*job->command || strlen(value) >= sizeof(job->command)) {
			snprintf(why, 256, "command is there twice, or too long");
			return -EINVAL;
		}
		strcpy(job->command, value);
		return 0;
	}
	ret = wish_set(&job->wish, name, value);
	if (ret)
		snprintf(why, 256, "%.32s: %s (see mgpu-agent(1))", name,
			 ret == -ENOENT ? "unknown name" : "invalid value");
	return ret ? -EINVAL : 0;
}

int job_parse(char *text, struct job *job, char *why)
{
	int ret;

	memset(&job->wish, 0, sizeof(job->wish));
	*job->command = '\0';
	ret = lines_parse(text, take_line, job, why);
	if (!ret && (!*job->wish.kind || !*job->command)) {
		snprintf(why, 256, "a job needs kind= and command=");
		ret = -EINVAL;
	}
	return ret;
}

bool job_of_line(const char *line, char *text, size_t size)
{
	size_t at = 0;

	while (*line) {
		bool last = !strncmp(line, "command=", 8);
		size_t n = last ? strlen(line) : strcspn(line, " \t");

		if (at + n + 2 > size)
			return false;
		memcpy(text + at, line, n);
		at += n;
		text[at++] = '\n';
		line += n;
		line += strspn(line, " \t");
	}
	text[at] = '\0';
	return at;
}

/* ---- the folder ---- */

/* Others than root and the agent's user may add files only if they cannot touch those of others. */
static int check_folder(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st)) {
		complain("%s: %s", path, strerror(errno));
		return -1;
	}
	if ((st.st_uid && st.st_uid != geteuid()) ||
	    (st.st_mode & 022 && !(st.st_mode & S_ISVTX))) {
		complain("%s: others could replace jobs there: give it to root, with chmod 700 or chmod 1733",
			 path);
		return -1;
	}
	return 0;
}

/*
 * Open a folder of the queue, or make it. Where others may add files, they may have made it before,
 * or a link in its place, so that logs would be written elsewhere.
 */
static int open_part(const struct jobs *jobs, const char *name)
{
	struct stat st;
	int fd = -1;

	if (!mkdirat(jobs->folder, name, 0755) || errno == EEXIST)
		fd = openat(jobs->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st)) {
		complain("%s/%s: %s", jobs->path, name, strerror(errno));
	} else if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & 022) {
		complain("%s/%s: others could change what is there: remove it; mgpu-agent makes it",
			 jobs->path, name);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static int open_folder(struct jobs *jobs)
{
	if (mkdir(jobs->path, 0700) && errno != EEXIST)
		goto failed;
	jobs->folder = open(jobs->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (jobs->folder < 0)
		goto failed;
	if (check_folder(jobs->folder, jobs->path))
		return -1;
	jobs->done = open_part(jobs, "done");
	jobs->failed = jobs->done < 0 ? -1 : open_part(jobs, "failed");
	if (jobs->failed < 0)
		return -1;
	jobs->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (jobs->watch >= 0)
		inotify_add_watch(jobs->watch, jobs->path, IN_CLOSE_WRITE | IN_MOVED_TO);
	return 0;
failed:
	complain("%s: %s", jobs->path, strerror(errno));
	return -1;
}

int jobs_open(struct jobs *jobs, const struct conf *conf)
{
	struct stat st;

	memset(jobs, 0, sizeof(*jobs));
	jobs->folder = jobs->done = jobs->failed = -1;
	jobs->pipe = -1;
	jobs->watch = -1;
	snprintf(jobs->path, sizeof(jobs->path), "%s", conf->queue);
	if (stat(conf->queue, &st) || !S_ISFIFO(st.st_mode))
		return open_folder(jobs);
	/* Open for writing, too: the pipe does not end with its last writer. */
	jobs->pipe = open(conf->queue, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (jobs->pipe < 0 || fstat(jobs->pipe, &st) || !S_ISFIFO(st.st_mode)) {
		complain("%s: %s", conf->queue, strerror(errno));
		return -1;
	}
	jobs->owner = st.st_uid;
	jobs->group = st.st_gid;
	snprintf(jobs->path, sizeof(jobs->path), "%s/jobs", conf->state);
	return open_folder(jobs);
}

void jobs_close(struct jobs *jobs)
{
	const int all[] = { jobs->folder, jobs->done, jobs->failed, jobs->pipe, jobs->watch };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			close(all[i]);
}

/* ---- the pipe ---- */

static int write_job(struct jobs *jobs, const char *name, const char *text)
{
	size_t size = strlen(text);
	int fd = openat(jobs->folder, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600), ret = -1;

	if (fd < 0)
		return -1;
	if (write(fd, text, size) == (ssize_t)size && !fchown(fd, jobs->owner, jobs->group) &&
	    !fsync(fd) && !renameat(jobs->folder, ".new", jobs->folder, name))
		ret = 0;
	close(fd);
	return ret;
}

/* The name grows with the time, so that lines run in their order over restarts, too. */
static void take_pipe_line(struct jobs *jobs, const char *line)
{
	char text[sizeof(jobs->line) + 64], name[64];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(name, sizeof(name), "%016llx-%08lx-%08x", (unsigned long long)now.tv_sec,
		 now.tv_nsec, jobs->nr++);
	if (!job_of_line(line, text, sizeof(text)))
		return;
	if (write_job(jobs, name, text))
		complain("%s: a line of the pipe is lost: %s", jobs->path, strerror(errno));
}

static void read_pipe(struct jobs *jobs)
{
	ssize_t n;
	char *end;

	while ((n = read(jobs->pipe, jobs->line + jobs->have,
			 sizeof(jobs->line) - 1 - jobs->have)) > 0) {
		jobs->have += (size_t)n;
		while ((end = memchr(jobs->line, '\n', jobs->have))) {
			size_t used = (size_t)(end - jobs->line) + 1;

			*end = '\0';
			if (!jobs->skip && !memchr(jobs->line, '\0', used - 1))
				take_pipe_line(jobs, jobs->line);
			jobs->skip = false;
			jobs->have -= used;
			memmove(jobs->line, jobs->line + used, jobs->have);
		}
		if (jobs->have < sizeof(jobs->line) - 1)
			continue;
		if (!jobs->skip)
			complain("%s: a line of the pipe is too long", jobs->path);
		jobs->skip = true;
		jobs->have = 0;
	}
}

void jobs_drain(struct jobs *jobs)
{
	char events[4096];

	while (jobs->watch >= 0 && read(jobs->watch, events, sizeof(events)) > 0)
		;
	if (jobs->pipe >= 0)
		read_pipe(jobs);
}

/* ---- jobs ---- */

void jobs_end(struct jobs *jobs, const char *name, bool done)
{
	if (renameat(jobs->folder, name, done ? jobs->done : jobs->failed, name)) {
		complain("%s/%s cannot be moved: %s; it is deleted", jobs->path, name,
			 strerror(errno));
		unlinkat(jobs->folder, name, 0);
	}
}

/* Take the owner's files only if nobody else's name is on them. */
static int read_job(struct jobs *jobs, const char *name, struct job *job, char *why)
{
	int fd = openat(jobs->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), ret;
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		snprintf(why, 256, "it is no file of its own");
		ret = -EINVAL;
	} else {
		ret = lines_read_fd(fd, &text);
		if (ret)
			snprintf(why, 256, "%s", strerror(-ret));
	}
	if (fd >= 0)
		close(fd);
	if (ret)
		return ret;
	snprintf(job->name, sizeof(job->name), "%s", name);
	job->uid = st.st_uid;
	job->gid = st.st_gid;
	ret = job_parse(text, job, why);
	free(text);
	return ret;
}

/* Find the oldest file, by time and then by name. */
static bool oldest(const struct jobs *jobs, char name[256])
{
	int fd = openat(jobs->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct timespec least = { 0 };
	const struct dirent *e;

	*name = '\0';
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((e = readdir(dir))) {
		struct stat st;
		bool older;

		if (*e->d_name == '.' ||
		    fstatat(jobs->folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    S_ISDIR(st.st_mode))
			continue;
		older = st.st_mtim.tv_sec != least.tv_sec ? st.st_mtim.tv_sec < least.tv_sec :
			st.st_mtim.tv_nsec != least.tv_nsec ? st.st_mtim.tv_nsec < least.tv_nsec :
			strcmp(e->d_name, name) < 0;
		if (*name && !older)
			continue;
		least = st.st_mtim;
		snprintf(name, 256, "%s", e->d_name);
	}
	closedir(dir);
	return *name;
}

/* A name with a line end would put lines of a user's choice into the journal. */
static bool is_printable(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			return false;
	return true;
}

bool jobs_next(struct jobs *jobs, struct job *job)
{
	char name[256], why[256];

	while (oldest(jobs, name)) {
		if (!is_printable(name)) {
			complain("%s: a job's name has control characters; it is deleted",
				 jobs->path);
			unlinkat(jobs->folder, name, 0);
			continue;
		}
		if (!read_job(jobs, name, job, why))
			return true;
		complain("job %s: %s", name, why);
		jobs_end(jobs, name, false);
	}
	return false;
}

/*
 * The output goes to a new file of the owner's in a folder that only the agent writes to: the
 * owner of a former file of the name may have it open.
 */
static int open_log(const struct jobs *jobs, const struct job *job)
{
	char name[300];
	int fd;

	snprintf(name, sizeof(name), "%s.log", job->name);
	unlinkat(jobs->done, name, 0);
	fd = openat(jobs->done, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && fchown(fd, job->uid, job->gid)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Become the job's owner for good. */
static int become(const struct job *job)
{
	const struct passwd *pw = getpwuid(job->uid);
	gid_t gid = pw ? pw->pw_gid : job->gid;

	if (geteuid() != job->uid &&
	    ((pw ? initgroups(pw->pw_name, gid) : setgroups(0, NULL)) || setresgid(gid, gid, gid) ||
	     setresuid(job->uid, job->uid, job->uid)))
		return -1;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	return chdir(pw ? pw->pw_dir : "/") ? chdir("/") : 0;
}

int jobs_start(struct jobs *jobs, const struct job *job, const struct hold *h, pid_t *pid)
{
	pid_t parent = getpid();
	int log = open_log(jobs, job), null;

	*pid = log < 0 ? -1 : fork();
	if (*pid) {
		if (*pid < 0)
			complain("job %s cannot be started: %s", job->name, strerror(errno));
		if (log >= 0)
			close(log);
		return *pid < 0 ? -1 : 0;
	}
	child_environment(h);
	unsetenv("NOTIFY_SOCKET");
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0 || become(job)) {
		complain("job %s cannot be run as user %u: %s", job->name, job->uid,
			 strerror(errno));
		_exit(CHILD_AGENT_FAILED);
	}
	/* After the change of users, which resets the signal at the parent's death. */
	child_prepare(parent);
	execl("/bin/sh", "sh", "-c", job->command, (char *)NULL);
	_exit(CHILD_NOT_FOUND);
}
