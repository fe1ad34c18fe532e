# SPDX-License-Identifier: GPL-2.0-only
#
# Models and the learner are pure and become liblearn.a. Training and the reader of histories
# belong to mgpu-learn. Loops over vectors need no more than that sums may be added up
# in another order.

learn-command := $(addprefix learn/,boost.c command.c examples.c history.c main.c network_train.c \
	pairs_command.c pairs_csv.c pairs_fit.c train_command.c trees_train.c)
learn-objs := $(patsubst %.c,$(OUT)/obj/%.o,$(learn-command))
learn-pure-objs := $(patsubst %.c,$(OUT)/obj/%.o, \
	$(filter-out $(learn-command),$(wildcard learn/*.c)))
learn-cflags := -O3 -fno-math-errno -fno-trapping-math -fopenmp-simd -Ilearn -Ialloc -Ipreempt
learn-libs := -lxgboost
