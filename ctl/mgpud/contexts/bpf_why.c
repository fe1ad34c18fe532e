// SPDX-License-Identifier: GPL-2.0-only
/* Sentences that say why BPF programs do not load. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>

#include "contexts/bpf_why.h"

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
