/* SPDX-License-Identifier: GPL-2.0-only */
/* Common parts of the fuzz targets. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's entry points. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Stop with a report: the input is then kept by libFuzzer. */
#define FUZZ_ASSERT(cond)						\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			abort();					\
		}							\
	} while (0)

/* Write one seed into the folder @dir. */
static inline void fuzz_seed(const char *dir, const char *name,
			     const void *data, size_t len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/seed-%s", dir, name);
	f = fopen(path, "w");
	if (!f || fwrite(data, 1, len, f) != len || fclose(f)) {
		perror(path);
		exit(1);
	}
}

/* `TARGET --seeds DIR` writes the seeds and ends. */
#define FUZZ_SEEDS(write_seeds)						\
	int LLVMFuzzerInitialize(int *argc, char ***argv)		\
	{								\
		if (*argc == 3 && !strcmp((*argv)[1], "--seeds")) {	\
			write_seeds((*argv)[2]);			\
			exit(0);					\
		}							\
		return 0;						\
	}

#endif /* TESTS_FUZZ_H */
