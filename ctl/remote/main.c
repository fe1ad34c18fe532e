// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-remoted: executes the GPU API calls of programs elsewhere.  It listens on a socket, and
 * starts itself anew for each program that connects, so that none sees another's memory, or ends
 * another's process.  On a second socket it says what the programs do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
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

#include <linux/vm_sockets.h>

#include "apps.h"
#include "clock.h"
#include "cmdline.h"
#include "complain.h"
#include "confine.h"
#include "control.h"
#include "launch.h"
#include "memory.h"
#include "notify.h"
#include "server.h"

#define SOCKET		"/run/mgpu/remote.sock"
#define CONTROL		".control"	/* what the control socket's name ends with */
#define APPLICATION	3	/* descriptor of the connection in a process for an application */
#define LEDGER		4	/* of the memory of its account's ledger, unless it has none */
#define RESTS		4	/* of its file of server.rests, with --rests, which has no ledger */
#define SPARE		(4ull << 30)	/* memory of such a process beside the objects, bytes */

static const char usage_text[] =
	"usage: mgpu-remoted [OPTION]...\n"
	"       mgpu-remoted help | version\n"
	"\n"
	"Execute the OpenCL and CUDA calls of programs that run elsewhere.\n"
	"\n"
	"      --socket PATH    listen there (" SOCKET ")\n"
	"      --vsock PORT     listen at this port for VMs, too\n"
	"      --mode OCTAL     rights of the socket (0660)\n"
	"      --user NAME      run the programs' processes as this account\n"
	"      --library PATH   the OpenCL library (libOpenCL.so.1)\n"
	"      --cuda PATH      the library of CUDA's driver (libcuda.so.1)\n"
	"      --programs N     at most so many programs at a time (64)\n"
	"      --memory MIB     memory objects of a program (4096)\n"
	"      --objects N      objects of a program (1000000)\n"
	"      --message MIB    the largest transfer (1024)\n"
	"      --pending MIB    transfers of a program that it does not wait for (1024)\n"
	"\n"
	"The programs of an account together:\n"
	"      --account-programs N, --account-memory MIB, --account-objects N,\n"
	"      --account-pending MIB\n"
	"                       the same limits (none)\n"
	"      --engines N      so many accounts compute at a time, in turns by their weights (all)\n"
	"      --share ACCOUNT[,weight=N][,gpu-limit=P%]\n"
	"                       what user:NAME, vm:CID or others have of the engines' time: a weight\n"
	"                       from 1 to 10000 (100), and a part of an engine (no limit); may be\n"
	"                       repeated\n"
	"\n"
	"      --confine WHAT   forbid the programs' processes what no driver needs: all, calls\n"
	"                       (of the system, and no files), or none (all)\n"
	"      --read PATH      with all: they may read that, too; may be repeated\n"
	"      --write PATH     with all: they may write below that, too; may be repeated\n"
	"\n"
	"      --control PATH   tell 'gpuctl remote' there what programs do; none: nowhere\n"
	"                       (the path of the socket and " CONTROL ")\n"
	"      --group NAME     group that may ask (mgpu if it exists, or else root only)\n"
	"  -h, --help           this text\n"
	"  -V, --version        the version\n";

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "vsock", required_argument, NULL, 'v' },
	{ "mode", required_argument, NULL, 'm' },
	{ "user", required_argument, NULL, 'u' },
	{ "library", required_argument, NULL, 'l' },
	{ "cuda", required_argument, NULL, 'n' },
	{ "programs", required_argument, NULL, 'p' },
	{ "memory", required_argument, NULL, 'M' },
	{ "objects", required_argument, NULL, 'o' },
	{ "message", required_argument, NULL, 'e' },
	{ "pending", required_argument, NULL, 'P' },
	{ "account-programs", required_argument, NULL, 'a' },
	{ "account-memory", required_argument, NULL, 'b' },
	{ "account-objects", required_argument, NULL, 'c' },
	{ "account-pending", required_argument, NULL, 'd' },
	{ "engines", required_argument, NULL, 'E' },
	{ "share", required_argument, NULL, 'H' },
	{ "confine", required_argument, NULL, 'f' },
	{ "read", required_argument, NULL, 'r' },
	{ "write", required_argument, NULL, 'w' },
	{ "control", required_argument, NULL, 'C' },
	{ "group", required_argument, NULL, 'g' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	/* of a process for an application: its entry in the ledger, or none */
	{ "serve", required_argument, NULL, 'S' },
	{ "rests", no_argument, NULL, 'R' },
	{ "launch", no_argument, NULL, 'L' },	/* of mgpu-renderd, see launch.h */
	{ 0 }
};

static const char *const names[] = {
	"socket", "vsock", "mode", "user", "library", "cuda", "programs", "memory", "objects",
	"message", "pending", "account-programs", "account-memory", "account-objects",
	"account-pending", "engines", "share", "confine", "read", "write", "control", "group",
	"help", "version", NULL
};

static struct {
	const char *socket;
	const char *user;
	const char *library;
	const char *cuda;
	const char *control;
	const char *group;
	const char *confine;
	struct confine files;
	uint64_t vsock;
	unsigned int mode;
	unsigned int programs;
	unsigned int account_programs;
	uint64_t account[LEDGER_LIMITS];
	unsigned int engines;
	struct apps apps;
	const char *serve;
	bool rests;
	bool launch;
	struct limits limits;
} opt = {
	.socket = SOCKET, .library = "libOpenCL.so.1", .cuda = "libcuda.so.1", .group = "auto",
	.mode = 0660, .confine = "all", .programs = 64, .account_programs = UINT_MAX,
	.engines = UINT_MAX,
	.account = {
		[LEDGER_MEMORY] = UINT64_MAX, [LEDGER_OBJECTS] = UINT64_MAX,
		[LEDGER_PENDING] = UINT64_MAX,
	},
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

/* Add a path to a list. */
static bool add_path(const char *text, const char **list)
{
	for (unsigned int i = 0; i < CONFINE_PATHS; i++) {
		if (!list[i]) {
			list[i] = text;
			return true;
		}
	}
	return false;
}

static int confine(void)
{
	int ret = 0;

	if (!strcmp(opt.confine, "none"))
		return 0;
	if (!strcmp(opt.confine, "all") && confine_has_files()) {
		/* With a slash the library is a file, and no name to look for in the system. */
		if (strchr(opt.library, '/'))
			add_path(opt.library, opt.files.read);
		if (strchr(opt.cuda, '/'))
			add_path(opt.cuda, opt.files.read);
		ret = confine_files(&opt.files);
	}
	if (!ret)
		ret = confine_calls();
	if (ret)
		complain("cannot confine the process: %s", strerror(-ret));
	return ret;
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

/* Take the program's entry in its account's ledger. */
static int open_ledger(struct ledger *l)
{
	int ret;

	if (!strcmp(opt.serve, "none"))
		return 0;
	ret = ledger_open(l, LEDGER, (unsigned int)strtoul(opt.serve, NULL, 10));
	if (ret) {
		complain("the ledger: %s", strerror(-ret));
		return ret;
	}
	close(LEDGER);
	memcpy(l->limits, opt.account, sizeof(l->limits));
	owner_of(&l->owner, APPLICATION);
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

/* Load the library of the API that the program asks for. */
static int choose(struct server *s, uint32_t number)
{
	const char *name = number == cuda_server.number ? opt.cuda : opt.library;
	void *library;

	if (number == cuda_server.number)
		s->api = &cuda_server;
	else if (number == opencl_server.number)
		s->api = &opencl_server;
	else
		return -ENOENT;
	/* The library must not find this project's front end, which would come back here. */
	setenv("MGPU_REMOTE", "off", 1);
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		complain("%s", dlerror());
		return -ELIBACC;
	}
	s->native = s->api->open(library);
	return 0;
}

static int serve(void)
{
	static struct server server = { .choose = choose, .fd = APPLICATION };
	pthread_t thread;
	sigset_t none;
	int ret;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* The programs of a listener that ends do, too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	ret = open_ledger(&server.ledger);
	if (!ret)
		ret = drop_rights();
	if (!ret)
		ret = limit();
	if (ret)
		return ret;
	ret = confine();
	if (ret)
		return ret;
	server.limits = opt.limits;
	server.rests = opt.rests ? RESTS : 0;
	ret = pthread_create(&thread, NULL, watch, NULL);
	if (ret) {
		complain("cannot start a thread: %s", strerror(ret));
		return -ret;
	}
	ret = server_serve(&server);
	if (ret == -EPROTO)
		complain("program %d sent what no front end sends", getpid());
	else if (ret && ret != -ECONNRESET && ret != -EPIPE && ret != -ELIBACC)
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

/* Listen for all VMs of this machine. */
static int listen_on_vsock(unsigned int port)
{
	const struct sockaddr_vm addr = {
		.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = port,
	};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, 64))
		return fd;
	ret = -errno;
	complain("vsock port %u: %s", port, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Have the descriptors that a process for a program has. */
static bool place(int program, int ledger)
{
	/* Neither is to lie where the other belongs. */
	program = fcntl(program, F_DUPFD, LEDGER + 1);
	ledger = fcntl(ledger, F_DUPFD, LEDGER + 1);
	return program >= 0 && ledger >= 0 && dup2(program, APPLICATION) >= 0 &&
		dup2(ledger, LEDGER) >= 0 && !close(program) && !close(ledger);
}

/* Start a process for the program at the other end. */
static bool start(int fd, struct app *app, char **argv)
{
	char entry[32];
	pid_t pid = fork();

	if (pid < 0)
		complain("cannot start a process: %s", strerror(errno));
	if (pid > 0)
		apps_started(app, pid);
	if (pid)
		return pid > 0;
	setpgid(0, 0);
	snprintf(entry, sizeof(entry), "--serve=%u", app->entry);
	argv[1] = entry;
	if (!place(fd, app->account->fd))
		_exit(1);
	execv("/proc/self/exe", argv);
	complain("cannot start myself: %s", strerror(errno));
	_exit(1);
}

static void reap(struct apps *apps)
{
	struct app *app;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		app = apps_find(apps, pid);
		if (app)
			apps_remove(apps, app);
		if (WIFSIGNALED(status))
			complain("program %d has ended its process: %s", pid,
				 strsignal(WTERMSIG(status)));
	}
}

static void take_program(int fd, struct apps *apps, char **argv)
{
	int program = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	struct app *app;

	if (program < 0)
		return;
	app = apps_add(apps, program);
	if (app && !start(program, app, argv))
		apps_remove(apps, app);
	close(program);
}

static int open_control(struct control_socket **control, struct apps *apps)
{
	static struct control_api apis[3];
	char path[PATH_MAX];

	*control = NULL;
	if (opt.control && !strcmp(opt.control, "none"))
		return 0;
	apis[0] = (struct control_api){ opencl_server.number, opencl_server.name };
	apis[1] = (struct control_api){ cuda_server.number, cuda_server.name };
	snprintf(path, sizeof(path), "%s" CONTROL, opt.socket);
	return control_open(control, opt.control ? opt.control : path, opt.group, apps, apis);
}

/* Wait for a descriptor, and at most so long, nanoseconds. */
static int poll_until(struct pollfd *fds, nfds_t nr, uint64_t wait_ns)
{
	const struct timespec wait = {
		.tv_sec = (time_t)(wait_ns / NSEC), .tv_nsec = (long)(wait_ns % NSEC),
	};

	return ppoll(fds, nr, wait_ns == UINT64_MAX ? NULL : &wait, NULL);
}

static int listener(int argc, char **argv)
{
	/* A process that is stopped, or goes on, has not ended. */
	const struct sigaction ended = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };
	struct apps *apps = &opt.apps;
	char **own = calloc((size_t)argc + 2, sizeof(*own));
	struct signalfd_siginfo info;
	struct control_socket *control;
	struct pollfd fds[4];
	int fd, vsock = -1, ret;
	sigset_t set;

	if (!own)
		return -ENOMEM;
	/* Before the others, one of which may be "--", comes that of start(). */
	own[0] = argv[0];
	for (int i = 1; i < argc; i++)
		own[i + 1] = argv[i];
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGCHLD, &ended, NULL);
	apps->max = opt.programs;
	apps->account_max = opt.account_programs;
	apps_init(apps, opt.engines);
	if (!strcmp(opt.confine, "all") && !confine_has_files())
		complain("the kernel has no Landlock: programs' processes see the files that their account sees");
	if (opt.vsock)
		vsock = listen_on_vsock((unsigned int)opt.vsock);
	fd = vsock < 0 && opt.vsock ? vsock : listen_on(opt.socket);
	if (fd < 0)
		return fd;
	ret = open_control(&control, apps);
	if (ret) {
		unlink(opt.socket);
		return ret;
	}
	fds[0] = (struct pollfd){ .fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = vsock, .events = POLLIN };
	fds[3] = (struct pollfd){ .fd = control ? control_fd(control) : -1, .events = POLLIN };
	notify("READY=1\nSTATUS=listening on %s", opt.socket);
	for (;;) {
		if (poll_until(fds, 4, shares_look(&apps->shares, now_ns())) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents && read(fds[0].fd, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo != SIGCHLD)
				break;
			reap(apps);
		}
		for (int i = 1; i < 3; i++)
			if (fds[i].revents)
				take_program(fds[i].fd, apps, own);
		if (fds[3].revents)
			control_run(control);
	}
	notify("STOPPING=1");
	apps_end(apps);
	control_close(control);
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

/* Read a part of an engine's time, as "30.5%" or "none". */
static bool read_limit(const char *text, uint32_t *ppm)
{
	double part;
	char *end;

	*ppm = 0;
	if (!strcmp(text, "none"))
		return true;
	part = strtod(text, &end) * MGPU_GPU_LIMIT_MAX / 100;
	if (end == text || strcmp(end, "%") != 0 || !(part >= MGPU_GPU_LIMIT_MIN) ||
	    !(part <= MGPU_GPU_LIMIT_MAX))
		return false;
	*ppm = (uint32_t)(part + 0.5);
	return true;
}

/* Read ACCOUNT[,weight=N][,gpu-limit=P%]. */
static bool take_share(const char *text)
{
	struct part part = { .weight = SHARES_WEIGHT };
	char copy[256], *word, *rest = copy;
	uint64_t weight;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	word = strsep(&rest, ",");
	if (!owner_parse(&part.owner, word))
		return false;
	while ((word = strsep(&rest, ","))) {
		if (!strncmp(word, "weight=", 7)) {
			if (!number(word + 7, 1, MGPU_WEIGHT_MAX, &weight))
				return false;
			part.weight = (uint32_t)weight;
		} else if (strncmp(word, "gpu-limit=", 10) != 0 ||
			   !read_limit(word + 10, &part.limit_ppm)) {
			return false;
		}
	}
	return !apps_set_part(&opt.apps, &part);
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
	case 'v':
		return number(text, 1, UINT32_MAX - 1, &opt.vsock);
	case 'u':
		opt.user = text;
		return true;
	case 'l':
		opt.library = text;
		return true;
	case 'n':
		opt.cuda = text;
		return true;
	case 'm':
		opt.mode = (unsigned int)strtoul(text, &end, 8);
		return *text && !*end && opt.mode <= 0777;
	case 'p':
		if (!number(text, 1, 100000, &v))
			return false;
		opt.programs = (unsigned int)v;
		return true;
	case 'a':
		if (!number(text, 1, 100000, &v))
			return false;
		opt.account_programs = (unsigned int)v;
		return true;
	case 'b':
		return number(text, mib, most, &opt.account[LEDGER_MEMORY]);
	case 'c':
		return number(text, 1, most, &opt.account[LEDGER_OBJECTS]);
	case 'd':
		return number(text, mib, most, &opt.account[LEDGER_PENDING]);
	case 'E':
		if (!number(text, 1, 100000, &v))
			return false;
		opt.engines = (unsigned int)v;
		return true;
	case 'H':
		return take_share(text);
	case 'f':
		opt.confine = text;
		return !strcmp(text, "all") || !strcmp(text, "calls") || !strcmp(text, "none");
	case 'r':
		return add_path(text, opt.files.read);
	case 'w':
		return add_path(text, opt.files.write);
	case 'C':
		opt.control = text;
		return true;
	case 'g':
		opt.group = text;
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
			opt.serve = optarg;
			break;
		case 'R':
			opt.rests = true;
			break;
		case 'L':
			opt.launch = true;
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
	if (opt.launch)
		return launch(argc, argv, opt.programs) ? 1 : 0;
	return listener(argc, argv) ? 1 : 0;
}
