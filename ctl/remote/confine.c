// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- system calls ---- */

static const int calls[] = {
	/* other processes */
	SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise), SCMP_SYS(pidfd_getfd),
	/* the file system's tree, and files by handles */
	SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(mount_setattr), SCMP_SYS(move_mount),
	SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount),
	SCMP_SYS(fspick), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(name_to_handle_at),
	SCMP_SYS(open_by_handle_at), SCMP_SYS(quotactl), SCMP_SYS(quotactl_fd),
	SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(fanotify_init),
	SCMP_SYS(fanotify_mark),
	/* the kernel */
	SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(syslog),
	SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(lookup_dcookie),
	SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register), SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl),
	/* namespaces */
	SCMP_SYS(unshare), SCMP_SYS(setns),
	/* the machine */
	SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt), SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex),
	SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(vhangup),
};

static const int families[] = {
	AF_PACKET, AF_ALG, AF_KEY, AF_VSOCK, AF_XDP, AF_BLUETOOTH, AF_CAN, AF_TIPC, AF_RXRPC,
};

static const int namespaces[] = {
	CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
	CLONE_NEWCGROUP,
};

static int add_rules(scmp_filter_ctx ctx)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	int ret = 0;

	for (size_t i = 0; i < ARRAY_LEN(calls) && !ret; i++)
		ret = seccomp_rule_add(ctx, refuse, calls[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(families) && !ret; i++)
		ret = seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 1,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	for (size_t i = 0; i < ARRAY_LEN(namespaces) && !ret; i++)
		ret = seccomp_rule_add(ctx, refuse, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, (scmp_datum_t)namespaces[i],
					       (scmp_datum_t)namespaces[i]));
	/* Its flags are in memory. The C library goes back to clone() without it. */
	if (!ret)
		ret = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Nothing is made up on a terminal; the upper half of the number is not looked at. */
	if (!ret)
		ret = seccomp_rule_add(ctx, refuse, SCMP_SYS(ioctl), 1,
				       SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, TIOCSTI));
	return ret;
}

int confine_calls(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int ret;

	if (!ctx)
		return -ENOMEM;
	ret = add_rules(ctx);
	if (!ret)
		ret = seccomp_load(ctx);
	seccomp_release(ctx);
	return ret;
}

/* ---- files ---- */

/* struct landlock_ruleset_attr as it is from version 6 on; older headers have a part of it. */
struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

#define ABI_NEEDED	2		/* files can be renamed into another directory */
#define ABI_TRUNCATE	3
#define ABI_NET		4
#define ABI_SCOPED	6
#define RIGHT_TRUNCATE	(1ull << 14)	/* LANDLOCK_ACCESS_FS_TRUNCATE */
#define SCOPED		3ull		/* abstract sockets, and signals, of others */

#define READ	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
		 LANDLOCK_ACCESS_FS_READ_DIR)
/* Everything up to LANDLOCK_ACCESS_FS_REFER */
#define ALL	((LANDLOCK_ACCESS_FS_REFER << 1) - 1)
/* Of a file that is no directory. */
#define FILE_RIGHTS	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
			 LANDLOCK_ACCESS_FS_READ_FILE | RIGHT_TRUNCATE)

/* Libraries, drivers, compilers, and their settings. */
static const char *const readable[] = {
	"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/run", "/sbin",
	"/sys", "/usr",
};

static const char *const temporary[] = { "/tmp", "/var/tmp", "/dev/shm" };

static int landlock_abi(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
			    LANDLOCK_CREATE_RULESET_VERSION);
}

bool confine_has_files(void)
{
	return landlock_abi() >= ABI_NEEDED;
}

/* Allow rights below a path; one that is not there is none. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights };
	struct stat st;
	int ret = 0;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -errno;
	if (!fstat(rule.parent_fd, &st) && !S_ISDIR(st.st_mode))
		rule.allowed_access &= FILE_RIGHTS;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		ret = -errno;
	close(rule.parent_fd);
	return ret;
}

static int allow_all(int ruleset, const char *const *paths, size_t nr, uint64_t rights)
{
	int ret = 0;

	for (size_t i = 0; i < nr && paths[i] && !ret; i++)
		ret = allow(ruleset, paths[i], rights);
	return ret;
}

/* Allow what an environment variable names. */
static int allow_variable(int ruleset, const char *name, uint64_t rights)
{
	const char *path = getenv(name);

	return path && *path ? allow(ruleset, path, rights) : 0;
}

/* Allow a driver's cache below a variable's directory, which the driver would make itself. */
static int allow_cache(int ruleset, const char *variable, const char *name, uint64_t rights)
{
	const char *above = getenv(variable);
	char path[PATH_MAX];

	if (!above || !*above ||
	    snprintf(path, sizeof(path), "%s/%s", above, name) >= (int)sizeof(path))
		return 0;
	for (char *p = strchr(path + strlen(above) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	mkdir(path, 0700);
	return allow(ruleset, path, rights);
}

static int allow_caches(int ruleset, uint64_t rights)
{
	static const struct {
		const char *variable;
		const char *home;	/* below $HOME, without the variable */
		const char *name;
		const char *device;	/* of which it is */
	} caches[] = {
		{ "XDG_CACHE_HOME", ".cache", "pocl", "/" },
		{ "XDG_CACHE_HOME", ".cache", "mesa_shader_cache", "/dev/dri" },
		{ "XDG_CACHE_HOME", ".cache", "neo_compiler_cache", "/dev/dri" },
	};
	char path[64];
	int ret = 0;

	if (!access("/dev/nvidiactl", F_OK))
		ret = allow_cache(ruleset, "HOME", ".nv/ComputeCache", rights);
	for (size_t i = 0; i < ARRAY_LEN(caches) && !ret; i++) {
		if (access(caches[i].device, F_OK))
			continue;
		snprintf(path, sizeof(path), "%s/%s", caches[i].home, caches[i].name);
		ret = getenv(caches[i].variable) ?
			allow_cache(ruleset, caches[i].variable, caches[i].name, rights) :
			allow_cache(ruleset, "HOME", path, rights);
	}
	return ret;
}

int confine_files(const struct confine *c)
{
	int abi = landlock_abi(), ruleset, ret;
	const uint64_t write = ALL | (abi >= ABI_TRUNCATE ? RIGHT_TRUNCATE : 0);
	const struct ruleset attr = { .fs = write, .scoped = SCOPED };
	const size_t size = abi >= ABI_SCOPED ? sizeof(attr) : sizeof(attr.fs);

	if (abi < ABI_NEEDED)
		return -EOPNOTSUPP;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0)
		return -errno;
	ret = allow_all(ruleset, readable, ARRAY_LEN(readable), READ);
	if (!ret)
		ret = allow_all(ruleset, temporary, ARRAY_LEN(temporary), write);
	/* Nodes are opened, and none is made. */
	if (!ret)
		ret = allow(ruleset, "/dev", READ | LANDLOCK_ACCESS_FS_WRITE_FILE);
	if (!ret)
		ret = allow_all(ruleset, c->read, CONFINE_PATHS, READ);
	if (!ret)
		ret = allow_all(ruleset, c->write, CONFINE_PATHS, write);
	if (!ret)
		ret = allow_variable(ruleset, "OCL_ICD_VENDORS", READ);
	if (!ret)
		ret = allow_variable(ruleset, "TMPDIR", write);
	if (!ret)
		ret = allow_variable(ruleset, "POCL_CACHE_DIR", write);
	if (!ret)
		ret = allow_variable(ruleset, "CUDA_CACHE_PATH", write);
	if (!ret)
		ret = allow_caches(ruleset, write);
	if (!ret && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		     syscall(SYS_landlock_restrict_self, ruleset, 0)))
		ret = -errno;
	close(ruleset);
	return ret;
}
