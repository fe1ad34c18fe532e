// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-remoted: executes the GPU API calls of programs elsewhere.  It listens on a socket, and
 * starts itself anew for each program that connects, so that none sees another's memory, or ends
 * another's process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmdline.h"
#include "complain.h"
#include "memory.h"
#include "notify.h"
#include "opencl/opencl_back.h"
#include "server.h"

#define SOCKET		"/run/mgpu/remote.sock"
#define APPLICATION	3	/* descriptor of the connection in a process for an application */
#define SPARE		(4ull << 30)	/* memory of such a process beside the objects, bytes */

static const char usage_text[] =
	"usage: mgpu-remoted [OPTION]...\n"
	"       mgpu-remoted help | version\n"
	"\n"
	"Execute the OpenCL calls of programs that run elsewhere.\n"
	"\n"
	"      --socket PATH    listen there (" SOCKET ")\n"
	"      --mode OCTAL     rights of the socket (0660)\n"
	"      --user NAME      run the programs' processes as this account\n"
	"      --library PATH   the OpenCL library (libOpenCL.so.1)\n"
	"      --programs N     at most so many programs at a time (64)\n"
	"      --memory MIB     memory objects of a program (4096)\n"
	"      --objects N      objects of a program (1000000)\n"
	"      --message MIB    the largest transfer (1024)\n"
	"      --pending MIB    transfers of a program that it does not wait for (1024)\n"
	"  -h, --help           this text\n"
	"  -V, --version        the version\n";

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "mode", required_argument, NULL, 'm' },
	{ "user", required_argument, NULL, 'u' },
	{ "library", required_argument, NULL, 'l' },
	{ "programs", required_argument, NULL, 'p' },
	{ "memory", required_argument, NULL, 'M' },
	{ "objects", required_argument, NULL, 'o' },
	{ "message", required_argument, NULL, 'e' },
	{ "pending", required_argument, NULL, 'P' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "serve", no_argument, NULL, 'S' },	/* of a process for an application */
	{ 0 }
};

static const char *const names[] = {
	"socket", "mode", "user", "library", "programs", "memory", "objects", "message", "pending",
	"help", "version", NULL
};

static struct {
	const char *socket;
	const char *user;
	const char *library;
	unsigned int mode;
	unsigned int programs;
	bool serve;
	struct limits limits;
} opt = {
	.socket = SOCKET, .library = "libOpenCL.so.1", .mode = 0660, .programs = 64,
	.limits = {
		.memory = 4ull << 30, .objects = 1000000, .message = 1ull << 30,
		.pending = 1ull << 30,
	},
};

/* ---- a process for an application ---- */

static int drop_rights(void)
{
	const struct passwd *pw;

	if (opt.user) {
		pw = getpwnam(opt.user);
		if (!pw) {
			complain("there is no account '%s': make it with adduser --system",
				 opt.user);
			return -ENOENT;
		}
		if (initgroups(opt.user, pw->pw_gid) || setgid(pw->pw_gid) || setuid(pw->pw_uid)) {
			complain("cannot become '%s': %s", opt.user, strerror(errno));
			return -errno;
		}
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		complain("no new privileges: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

static int limit(void)
{
	const uint64_t bytes = data_bytes() + opt.limits.memory + opt.limits.message +
		opt.limits.pending + SPARE;
	const struct rlimit core = { 0, 0 }, files = { 256, 256 }, data = { bytes, bytes };

	if (setrlimit(RLIMIT_CORE, &core) || setrlimit(RLIMIT_NOFILE, &files) ||
	    setrlimit(RLIMIT_DATA, &data)) {
		complain("limits: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

/* End with the program, also while the API waits for something. */
static void *watch(void *arg)
{
	struct pollfd fd = { .fd = APPLICATION, .events = POLLRDHUP };

	(void)arg;
	while (poll(&fd, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int serve(void)
{
	static struct opencl_calls calls;
	static struct server server = {
		.api = &opencl_server, .native = &calls, .fd = APPLICATION,
	};
	pthread_t thread;
	sigset_t none;
	void *library;
	int ret;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* The programs of a listener that ends do, too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	ret = drop_rights();
	if (!ret)
		ret = limit();
	if (ret)
		return ret;
	/* The library must not find this project's front end, which would come back here. */
	setenv("MGPU_REMOTE", "off", 1);
	library = dlopen(opt.library, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		complain("%s", dlerror());
		return -ENOENT;
	}
	opencl_load(&calls, library);
	server.limits = opt.limits;
	ret = pthread_create(&thread, NULL, watch, NULL);
	if (ret) {
		complain("cannot start a thread: %s", strerror(ret));
		return -ret;
	}
	ret = server_run(&server);
	if (ret == -EPROTO)
		complain("program %d sent what no front end sends", getpid());
	else if (ret && ret != -ECONNRESET && ret != -EPIPE)
		complain("program %d: %s", getpid(), strerror(-ret));
	return ret;
}

/* ---- the listener ---- */

static int listen_on(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t mask;
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		complain("%s: the name is too long", path);
		return -ENAMETOOLONG;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		goto failed;
	/* A socket that an earlier run left goes; one that is in use stays. */
	if (!stat(path, &st) && S_ISSOCK(st.st_mode)) {
		if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
			complain("%s is in use", path);
			close(fd);
			return -EADDRINUSE;
		}
		unlink(path);
	}
	mask = umask(~opt.mode & 0777);
	ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	umask(mask);
	if (ret || listen(fd, 64))
		goto failed;
	return fd;
failed:
	fd = -errno;
	complain("%s: %s", path, strerror(errno));
	return fd;
}

/* Start a process for the program at the other end. */
static bool start(int fd, char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		complain("cannot start a process: %s", strerror(errno));
	if (pid)
		return pid > 0;
	if (dup2(fd, APPLICATION) < 0 || (fd == APPLICATION && fcntl(fd, F_SETFD, 0)))
		_exit(1);
	execv("/proc/self/exe", argv);
	complain("cannot start myself: %s", strerror(errno));
	_exit(1);
}

static void reap(unsigned int *nr)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		(*nr)--;
		if (WIFSIGNALED(status))
			complain("program %d has ended its process: %s", pid,
				 strsignal(WTERMSIG(status)));
	}
}

static void take_program(int fd, unsigned int *nr, char **argv)
{
	int program = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	if (program < 0)
		return;
	if (*nr >= opt.programs)
		complain("a program is turned away: there are %u already (--programs)", *nr);
	else if (start(program, argv))
		(*nr)++;
	close(program);
}

static int listener(int argc, char **argv)
{
	char **own = calloc((size_t)argc + 2, sizeof(*own));
	struct signalfd_siginfo info;
	struct pollfd fds[2];
	unsigned int nr = 0;
	sigset_t set;
	int fd;

	if (!own)
		return -ENOMEM;
	/* Before the others: one of them may be "--". */
	own[0] = argv[0];
	own[1] = (char *)"--serve";
	for (int i = 1; i < argc; i++)
		own[i + 1] = argv[i];
	fd = listen_on(opt.socket);
	if (fd < 0)
		return fd;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[0] = (struct pollfd){ .fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	notify("READY=1\nSTATUS=listening on %s", opt.socket);
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents && read(fds[0].fd, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo != SIGCHLD)
				break;
			reap(&nr);
		}
		if (fds[1].revents)
			take_program(fd, &nr, own);
	}
	notify("STOPPING=1");
	unlink(opt.socket);
	free(own);
	return 0;
}

/* ---- the command line ---- */

static bool number(const char *text, uint64_t unit, uint64_t max, uint64_t *result)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !v || v > max / unit)
		return false;
	*result = v * unit;
	return true;
}

static bool take_option(int c, const char *text)
{
	const uint64_t mib = 1u << 20, most = 1ull << 40;
	uint64_t v;
	char *end;

	switch (c) {
	case 's':
		opt.socket = text;
		return true;
	case 'u':
		opt.user = text;
		return true;
	case 'l':
		opt.library = text;
		return true;
	case 'm':
		opt.mode = (unsigned int)strtoul(text, &end, 8);
		return *text && !*end && opt.mode <= 0777;
	case 'p':
		if (!number(text, 1, 100000, &v))
			return false;
		opt.programs = (unsigned int)v;
		return true;
	case 'M':
		return number(text, mib, most, &opt.limits.memory);
	case 'o':
		return number(text, 1, most, &opt.limits.objects);
	case 'e':
		return number(text, mib, most, &opt.limits.message);
	case 'P':
		return number(text, mib, most, &opt.limits.pending);
	}
	return false;
}

static int word(const char *w)
{
	static const char *const words[] = { "help", "version", NULL };
	char text[256];

	if (!strcmp(w, "help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (!strcmp(w, "version")) {
		puts("mgpu-remoted " MGPU_VERSION);
		return 0;
	}
	unknown_command(text, sizeof(text), "mgpu-remoted", w, words);
	complain("%s", text);
	return 2;
}

int main(int argc, char **argv)
{
	char text[256];
	int c, which;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":hV", options, &which)) != -1) {
		switch (c) {
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("mgpu-remoted " MGPU_VERSION);
			return 0;
		case '?':
		case ':':
			getopt_problem(text, sizeof(text), "mgpu-remoted", c, argv, options, names);
			complain("%s", text);
			return 2;
		case 'S':
			opt.serve = true;
			break;
		default:
			if (!take_option(c, optarg)) {
				complain("--%s: '%s' is not allowed; see 'mgpu-remoted --help'",
					 options[which].name, optarg);
				return 2;
			}
		}
	}
	if (optind < argc)
		return word(argv[optind]);
	/* Libraries have threads, and nothing is left to be done for a program. */
	if (opt.serve)
		_exit(serve() ? 1 : 0);
	return listener(argc, argv) ? 1 : 0;
}
