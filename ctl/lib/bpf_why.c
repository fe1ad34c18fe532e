// SPDX-License-Identifier: GPL-2.0-only
/* BPF programs that do not load, and events that they miss. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf_why.h"

/* libbpf's last warning, which is more precise than the errno. */
static char complaint[512];

static int keep_complaint(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_WARN)
		vsnprintf(complaint, sizeof(complaint), fmt, ap);
	if (getenv("MGPUD_LIBBPF_DEBUG"))
		vfprintf(stderr, fmt, ap);
	return 0;
}

void bpf_why_init(void)
{
	complaint[0] = '\0';
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(keep_complaint);
}

void bpf_why_say(char *why, size_t len, const char *fmt, ...)
{
	size_t used = strlen(why);
	va_list ap;

	if (used && used + 1 < len)
		why[used++] = ' ';
	va_start(ap, fmt);
	vsnprintf(why + used, len - used, fmt, ap);
	va_end(ap);
}

void bpf_why(char *why, size_t len, const char *what, int code)
{
	complaint[strcspn(complaint, "\n")] = '\0';
	if (code == -EPERM || code == -EACCES)
		bpf_why_say(why, len, "No permission to load the %s programs: run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.",
			    what);
	else if (access("/sys/kernel/btf/vmlinux", R_OK))
		bpf_why_say(why, len, "The kernel offers no BTF (CONFIG_DEBUG_INFO_BTF), which the %s programs need.",
			    what);
	else if (access("/sys/kernel/btf/mgpu", R_OK))
		bpf_why_say(why, len, "mgpu.ko has no BTF, which the %s programs need: build it with pahole and the kernel's vmlinux at hand.",
			    what);
	else if (code == -EBUSY)
		bpf_why_say(why, len, "The %s programs cannot attach: the tracepoints are busy.",
			    what);
	else
		bpf_why_say(why, len, "The %s programs do not load: %s (%s).", what,
			    strerror(-code), complaint[0] ? complaint : "no reason given");
	complaint[0] = '\0';
}

uint64_t bpf_missed(const struct bpf_object *obj)
{
	struct bpf_program *prog;
	uint64_t sum = 0;

	bpf_object__for_each_program(prog, obj) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (bpf_program__fd(prog) >= 0 &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
			sum += info.recursion_misses;
	}
	return sum;
}
