// SPDX-License-Identifier: GPL-2.0-only
/* Test files that programs write whole. */
#include "files.h"
#include "tap.h"

static char dir[64], path[96], beside[96], other[96];

static int write_new(const void *text, FILE *f)
{
	return fputs(text, f) < 0;
}

static int write_half(const void *text, FILE *f)
{
	fputs(text, f);
	errno = ENOSPC;
	return -1;
}

static bool has(const char *file, const char *text)
{
	char line[64] = "";
	FILE *f = fopen(file, "re");

	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
	}
	return !strcmp(line, text);
}

static void make(const char *file, const char *text)
{
	FILE *f = fopen(file, "we");

	TAP_NEED(f);
	fputs(text, f);
	fclose(f);
}

static void a_file_is_replaced(void)
{
	make(path, "old");
	make(beside, "of a run that was killed");
	TAP_EQ(replace_file(path, "new", write_new), 0);
	TAP_CHECK(has(path, "new"));
	TAP_EQ(access(beside, F_OK), -1);
}

static void an_error_leaves_the_file(void)
{
	make(path, "old");
	TAP_EQ(replace_file(path, "half", write_half), -1);
	TAP_CHECK(has(path, "old"));
	TAP_EQ(access(beside, F_OK), -1);
}

static void a_link_is_not_followed(void)
{
	make(path, "old");
	make(other, "another user's");
	TAP_NEED(!symlink(other, beside));
	TAP_EQ(replace_file(path, "new", write_new), 0);
	TAP_CHECK(has(other, "another user's"));
	TAP_CHECK(has(path, "new"));
}

int main(void)
{
	char command[96];
	int ret;

	strcpy(dir, "/tmp/test_files.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(beside, sizeof(beside), "%s/file.tmp", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	tap_run(a_file_is_replaced, "a file is replaced, and nothing is left beside it");
	tap_run(an_error_leaves_the_file, "an error leaves the file as it was");
	tap_run(a_link_is_not_followed, "a link beside the file is not followed");
	ret = tap_done();
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	return system(command) ? 1 : ret;
}
