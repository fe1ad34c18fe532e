# SPDX-License-Identifier: GPL-2.0-only
test_bench_stats-srcs := ../../tools/bench/sched_stats.c
test_bench_stats-cflags := -I../../tools/bench
