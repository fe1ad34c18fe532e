// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that makes system calls, which PoCL lets it: what a program can do to the process that
 * executes it.  The arguments are paths: one that it opens for reading, and one that it writes.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common.h"

static const char source[] =
	"kernel void call(long nr, ulong a, ulong b, ulong c, global const char *path, int which,\n"
	"		  global long *result)\n"
	"{\n"
	"	long got;\n"
	"\n"
	"	if (which == 1)\n"
	"		a = (ulong)path;\n"
	"	if (which == 2)\n"
	"		b = (ulong)path;\n"
	"	__asm__ volatile(\"syscall\"\n"
	"			 : \"=a\"(got) : \"a\"(nr), \"D\"(a), \"S\"(b), \"d\"(c)\n"
	"			 : \"rcx\", \"r11\", \"memory\");\n"
	"	result[0] = got;\n"
	"}\n";

static cl_kernel kernel;
static cl_mem path, result;

static void call(const char *name, long nr, uint64_t a, uint64_t b, uint64_t c, int which)
{
	const size_t one = 1;
	int64_t got;

	cl_arg(kernel, 0, 8, &(int64_t){ nr });
	cl_arg(kernel, 1, 8, &a);
	cl_arg(kernel, 2, 8, &b);
	cl_arg(kernel, 3, 8, &c);
	cl_arg(kernel, 4, sizeof(path), &path);
	cl_arg(kernel, 5, 4, &which);
	cl_arg(kernel, 6, sizeof(result), &result);
	CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, result, CL_TRUE, 0, 8, &got, 0, NULL, NULL));
	printf("%s %s\n", name, got >= 0 ? "good" : strerrorname_np((int)-got));
}

static void use_path(const char *text)
{
	char bytes[512] = "";

	snprintf(bytes, sizeof(bytes), "%s", text);
	CL(clEnqueueWriteBuffer(queue, path, CL_TRUE, 0, sizeof(bytes), bytes, 0, NULL, NULL));
}

int main(int argc, char **argv)
{
	const uint64_t at = (uint64_t)(int64_t)AT_FDCWD;

	if (argc != 3)
		return 2;
	cl_open(source, 0);
	kernel = cl_kernel_of("call");
	path = cl_buffer(0, 512, NULL);
	result = cl_buffer(0, 8, NULL);

	/* Calls that fail otherwise, or do nothing, where they are allowed. */
	call("ptrace", SYS_ptrace, 0x4206, 1u << 30, 0, 0);
	call("process_vm_readv", SYS_process_vm_readv, 1u << 30, 0, 0, 0);
	call("mount", SYS_mount, 0, 0, 0, 0);
	call("chroot", SYS_chroot, 0, 0, 0, 0);
	call("init_module", SYS_init_module, 0, 0, 0, 0);
	call("kexec_load", SYS_kexec_load, 0, 1u << 20, 0, 0);
	call("swapon", SYS_swapon, 0, 0, 0, 0);
	call("bpf", SYS_bpf, 1000, 0, 0, 0);
	call("perf_event_open", SYS_perf_event_open, 0, 0, 0, 0);
	call("userfaultfd", SYS_userfaultfd, ~0u, 0, 0, 0);
	call("io_uring_setup", SYS_io_uring_setup, 0, 0, 0, 0);
	call("keyctl", SYS_keyctl, 1000, 0, 0, 0);
	call("unshare", SYS_unshare, CLONE_NEWUTS, 0, 0, 0);
	call("setns", SYS_setns, ~0u, 0, 0, 0);
	call("clone", SYS_clone, CLONE_NEWUTS | CLONE_THREAD, 0, 0, 0);
	call("iopl", SYS_iopl, 4, 0, 0, 0);
	call("packets", SYS_socket, AF_PACKET, 1000, 0, 0);
	call("threads", SYS_sched_yield, 0, 0, 0, 0);

	use_path(argv[1]);
	call("read", SYS_openat, at, 0, O_RDONLY, 2);
	use_path(argv[2]);
	call("write", SYS_openat, at, 0, O_WRONLY, 2);
	call("remove", SYS_unlink, 0, 0, 0, 1);
	use_path("/etc/passwd");
	call("read /etc", SYS_openat, at, 0, O_RDONLY, 2);
	CL(clReleaseMemObject(path));
	CL(clReleaseMemObject(result));
	CL(clReleaseKernel(kernel));
	cl_close();
	return 0;
}
