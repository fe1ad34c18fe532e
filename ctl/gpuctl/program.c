// SPDX-License-Identifier: GPL-2.0-only
/* Programs of the system that gpuctl runs. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

int program_run(char *const *argv, const char *path, bool quiet, int *status)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int err;

	posix_spawn_file_actions_init(&actions);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	if (err == ENOENT && path)
		err = posix_spawn(&pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return -err;
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}
