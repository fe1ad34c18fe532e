// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz mgpu-defer's analysis.  The input is a program's file.  Whatever it has, the report is
 * whole: a loop has a class or a reason, and what it says lies in the program.
 */
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "classify.h"
#include "fuzz.h"

static void check_loop(const struct image *img, const struct loop_report *l)
{
	unsigned int i;

	FUZZ_ASSERT(l->class <= 3 && l->nr_calls);
	FUZZ_ASSERT(!l->class == !!l->nr_reasons);
	FUZZ_ASSERT(!l->extension || l->class == 3 || !l->class);
	FUZZ_ASSERT(l->header >= l->fn->start && l->end <= l->fn->end && l->header < l->end);
	for (i = 0; i < l->nr_calls; i++)
		FUZZ_ASSERT(image_function(img, l->calls[i].address));
	for (i = 0; i < l->nr_reasons; i++)
		FUZZ_ASSERT(*l->reasons[i].text);
	for (i = 0; i < l->nr_results; i++)
		FUZZ_ASSERT(*l->results[i].where && l->results[i].arg <= API_MAX_ARGS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct classify_options o = { .assume_success = size & 1 };
	struct image img;
	struct report r;
	char name[64];
	unsigned int i;
	int fd, ret;

	fd = memfd_create("program", MFD_CLOEXEC);
	FUZZ_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ret = image_open(&img, name);
	FUZZ_ASSERT(!ret == !*img.error);
	if (!ret) {
		FUZZ_ASSERT(!classify(&r, &img, &o));
		for (i = 0; i < r.nr_loops; i++)
			check_loop(&img, &r.loops[i]);
		report_free(&r);
	}
	image_close(&img);
	close(fd);
	return 0;
}

/* Whole programs are in corpus/; what only a linker can make is not made here. */
static void seeds(const char *dir)
{
	const Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_ehsize = sizeof(head), .e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	fuzz_seed(dir, "header", &head, sizeof(head));
}

FUZZ_SEEDS(seeds)
