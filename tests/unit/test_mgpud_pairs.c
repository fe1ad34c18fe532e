// SPDX-License-Identifier: GPL-2.0-only
/* Test the file of the speeds of pairs that mgpud reads. */
#include <sys/inotify.h>
#include <sys/stat.h>

#include "contexts/pair_speeds.h"
#include "file.h"
#include "pairs.h"
#include "preempt.h"
#include "tap.h"

#define SLOW	0.5
#define WEIGHT	7.0

static char path[64];
static char why[512];

/* A model that knows one pair of classes. */
static void write_file(const char *model)
{
	struct learn_file file = { .data = "0", .evaluation = "none" };
	static struct pairs_job job = {
		.model = "a", .dataset = "b", .gpus = 1, .batch = 1, .gpu_use = NAN,
		.memory_use = NAN,
	};
	static double zeros[4096];
	static struct pairs_seen seen;
	struct learn_pairs p = {
		.jobs = 1, .job = &job, .constant = 1, .additive = zeros, .ridge = zeros,
		.reach = 1, .seen = &seen, .nr_seen = 1,
	};
	FILE *f;

	p.forest.features = (unsigned int)pairs_tree_columns(&p);
	p.slow[PREEMPT_COMPUTE][PREEMPT_MEMORY] = SLOW;
	p.weight[PREEMPT_COMPUTE][PREEMPT_MEMORY] = WEIGHT;
	strcpy(file.model, model);
	f = open_memstream(&file.payload, &file.size);
	learn_pairs_write(&p, f);
	fclose(f);
	snprintf(path, sizeof(path), "/tmp/mgpud-pairs-%d", getpid());
	f = fopen(path, "w");
	TAP_NEED(f);
	TAP_EQ(learn_file_write(&file, f), 0);
	fclose(f);
	free(file.payload);
}

static bool is_cold(const struct preempt_norm *norm)
{
	struct preempt_norm cold;

	preempt_norm_cold(&cold);
	return !memcmp(norm, &cold, sizeof(cold));
}

static void a_file(void)
{
	struct preempt_norm norm;

	preempt_norm_cold(&norm);
	write_file("pairs");
	TAP_EQ(pairs_use(&norm, path, why, sizeof(why)), 0);
	TAP_NEAR(norm.slow[PREEMPT_COMPUTE][PREEMPT_MEMORY], SLOW, 1e-6);
	TAP_NEAR(norm.prior[PREEMPT_COMPUTE][PREEMPT_MEMORY], WEIGHT, 1e-6);
	/* a pair that it does not know */
	TAP_NEAR(norm.prior[PREEMPT_MEMORY][PREEMPT_MEMORY], PREEMPT_NORM_PRIOR, 0);
	/* and without it all is as it was */
	TAP_EQ(pairs_use(&norm, "", why, sizeof(why)), 0);
	TAP_CHECK(is_cold(&norm));
	unlink(path);
}

static void observed(void)
{
	struct preempt_norm norm;

	preempt_norm_cold(&norm);
	norm.slow[PREEMPT_COMPUTE][PREEMPT_MEMORY] = 2;
	norm.count[PREEMPT_COMPUTE][PREEMPT_MEMORY] = 30;
	write_file("pairs");
	TAP_EQ(pairs_use(&norm, path, why, sizeof(why)), 0);
	TAP_NEAR(norm.slow[PREEMPT_COMPUTE][PREEMPT_MEMORY], 2, 0);
	unlink(path);
}

static void refused(void)
{
	struct preempt_norm norm;

	preempt_norm_cold(&norm);
	write_file("network");
	TAP_EQ(pairs_use(&norm, path, why, sizeof(why)), -EINVAL);
	TAP_CHECK(strstr(why, "'mgpu-learn pairs train' writes some of \"pairs\""));
	TAP_CHECK(is_cold(&norm));
	unlink(path);
	/* its text goes to the log and into JSON */
	write_file("\033[2J\xff");
	TAP_EQ(pairs_use(&norm, path, why, sizeof(why)), -EINVAL);
	TAP_CHECK(strstr(why, "\"?[2J?\""));
	unlink(path);
	TAP_EQ(pairs_use(&norm, path, why, sizeof(why)), -EINVAL);
	TAP_CHECK(strstr(why, "No such file"));
	TAP_EQ(pairs_use(&norm, "/dev/null", why, sizeof(why)), -EINVAL);
	TAP_CHECK(strstr(why, "not a regular file"));
	TAP_CHECK(is_cold(&norm));
}

/* To open a device can have effects: a watchdog begins to count, a tape rewinds. */
static void no_file(void)
{
	int events = inotify_init1(IN_NONBLOCK);
	struct inotify_event event;
	struct preempt_norm norm;

	snprintf(path, sizeof(path), "/tmp/mgpud-pairs-%d", getpid());
	TAP_NEED(!mkfifo(path, 0600));
	TAP_NEED(inotify_add_watch(events, path, IN_OPEN) >= 0);
	TAP_EQ(pairs_use(&norm, path, why, sizeof(why)), -EINVAL);
	TAP_CHECK(strstr(why, "not a regular file"));
	TAP_EQ(read(events, &event, sizeof(event)), -1);
	TAP_EQ(errno, EAGAIN);
	close(events);
	unlink(path);
}

int main(void)
{
	tap_run(a_file, "speeds of a file are expected, until there is none");
	tap_run(observed, "what was observed stays");
	tap_run(refused, "a file that is none of pairs is refused");
	tap_run(no_file, "what is no regular file is not opened");
	return tap_done();
}
