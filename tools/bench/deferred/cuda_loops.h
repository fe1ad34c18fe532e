/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loops of CUDA's calls, to be measured: cuda_loops CLASS LAUNCHES.
 *
 * CLASS is 1 to 3, as Documentation/deferred.rst defines them.  Prints microseconds per launch,
 * with a synchronisation at the end, of several repetitions after one that is not counted.  The
 * including file has the loops, begin(), synchronise(), and now_us().
 */
#ifndef BENCH_CUDA_LOOPS_H
#define BENCH_CUDA_LOOPS_H

#define REPETITIONS	5

int main(int argc, char **argv)
{
	static void (*const loops[])(unsigned int n) = { constant, induction, results };
	int class_ = argc > 1 ? atoi(argv[1]) : 0, launches = argc > 2 ? atoi(argv[2]) : 0;

	if (class_ < 1 || class_ > 3 || launches < 1) {
		fputs("usage: cuda_loops CLASS LAUNCHES\n", stderr);
		return 2;
	}
	begin();
	for (int r = 0; r <= REPETITIONS; r++) {
		double start = now_us();

		loops[class_ - 1]((unsigned int)launches);
		synchronise();
		if (r)
			printf("us %.3f\n", (now_us() - start) / launches);
	}
	return 0;
}

#endif /* BENCH_CUDA_LOOPS_H */
