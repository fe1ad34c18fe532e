// SPDX-License-Identifier: GPL-2.0-only
/* When a server may work for a VM that gives it work past the module. */
#include <string.h>

#include "tap.h"
#include "turns.h"

#define MS	1000000ull

/* A server that is looked at, a module, and what they have done. */
static struct {
	struct turns t;
	uint64_t now, used;
	bool stopped, asked, owed, ready;
	unsigned int turns;
} sim;

static void reset(void)
{
	memset(&sim, 0, sizeof(sim));
	sim.now = 1000 * MS;
}

static void apply(unsigned int what)
{
	if (what & TURNS_END)
		sim.turns++;
	if (what & TURNS_ASK)
		sim.asked = true;
	if (what & TURNS_STOP)
		sim.stopped = true;
	if (what & TURNS_RUN)
		sim.stopped = false;
}

/* Some time passes, in which the server works for as long as it may, and a look follows. */
static void pass(uint64_t ns, uint64_t work)
{
	sim.now += ns;
	if (!sim.stopped)
		sim.used += work;
	apply(turns_look(&sim.t, sim.now, sim.used, sim.owed, sim.ready));
}

static void give(void)
{
	TAP_CHECK(sim.asked);
	sim.asked = false;
	apply(turns_given(&sim.t, sim.now, sim.used));
}

/* The state of a server that has used more than it may without a turn. */
static void stopped_server(void)
{
	reset();
	pass(2 * MS, 2 * MS);
	TAP_CHECK(sim.asked && !sim.stopped);
	pass(2 * MS, 2 * MS);
	TAP_CHECK(sim.stopped);
}

static void a_server_that_rests_is_left_alone(void)
{
	reset();
	for (int i = 0; i < 100; i++)
		pass(10 * MS, 5000);
	TAP_CHECK(!sim.asked && !sim.stopped);
	TAP_EQ(turns_next(&sim.t), TURNS_IDLE_NS);
}

/* Work in small pieces is paid for, too. */
static void little_adds_up(void)
{
	reset();
	for (int i = 0; i < 300 && !sim.asked; i++)
		pass(10 * MS, 5000);
	TAP_CHECK(sim.asked && !sim.stopped);
	give();
	pass(2 * MS, 0);
	TAP_EQ(sim.turns, 1);
	TAP_CHECK(!sim.asked && sim.t.state == TURNS_IDLE);
}

static void work_without_a_turn_stops(void)
{
	uint64_t used;

	stopped_server();
	TAP_EQ(turns_next(&sim.t), TURNS_IDLE_NS);
	used = sim.used;
	for (int i = 0; i < 100; i++)
		pass(10 * MS, 10 * MS);
	TAP_EQ(sim.used, used);
	give();
	TAP_CHECK(!sim.stopped);
	TAP_EQ(turns_next(&sim.t), TURNS_LOOK_NS);
}

/* Of two looks in a turn, the one behind its end ends it, and asks for the next. */
static void a_turn_has_a_length(void)
{
	stopped_server();
	give();
	for (int i = 0; i < 4; i++)
		pass(2 * MS, 2 * MS);
	TAP_EQ(sim.turns, 0);
	pass(2 * MS, 2 * MS);
	TAP_EQ(sim.turns, 1);
	TAP_CHECK(sim.asked && !sim.stopped);
}

/* The only VM, whose turns come at once, is never stopped. */
static void turns_without_a_pause(void)
{
	stopped_server();
	for (int i = 0; i < 1000; i++) {
		if (sim.asked)
			give();
		pass(2 * MS, 2 * MS);
		TAP_CHECK(!sim.stopped);
	}
	TAP_CHECK(sim.turns >= 150);
}

/* With turns only now and then, the server works in them, and little besides. */
static void turns_bound_the_work(void)
{
	uint64_t used;

	stopped_server();
	used = sim.used;
	for (int i = 0; i < 1000; i++) {
		if (i % 20 == 0 && sim.asked)
			give();
		pass(2 * MS, 2 * MS);
	}
	used = sim.used - used;
	/* 50 turns of 10 ms, and up to a look behind each: not 2 s. */
	TAP_CHECK(used >= 500 * MS);
	TAP_CHECK(used <= 50 * (10 + 2 + 2) * MS);
}

static void a_turn_with_nothing_to_do_ends(void)
{
	stopped_server();
	give();
	pass(2 * MS, MS);
	TAP_EQ(sim.turns, 0);
	pass(2 * MS, 0);
	TAP_EQ(sim.turns, 1);
	TAP_CHECK(!sim.asked && sim.t.state == TURNS_IDLE && !sim.stopped);
}

/* The server had no processor: it has work all the same. */
static void a_starved_server_keeps_its_turn(void)
{
	stopped_server();
	sim.ready = true;
	give();
	for (int i = 0; i < 4; i++)
		pass(2 * MS, 0);
	TAP_EQ(sim.turns, 0);
	TAP_CHECK(turns_seems_to_rest(&sim.t, sim.now + 2 * MS, sim.used));
	pass(2 * MS, 0);
	TAP_EQ(sim.turns, 1);
	TAP_CHECK(sim.asked && !sim.stopped);
}

/* A look at once, behind a command, sees no time in which the server could have worked. */
static void a_look_at_once_ends_no_turn(void)
{
	stopped_server();
	give();
	pass(1000, 0);
	TAP_EQ(sim.turns, 0);
}

static void a_command_that_waits_has_it_go_on(void)
{
	stopped_server();
	sim.owed = true;
	pass(1000, 0);
	TAP_CHECK(!sim.stopped);
	pass(50 * MS, 50 * MS);
	TAP_CHECK(!sim.stopped);
	sim.owed = false;
	pass(1000, 0);
	TAP_CHECK(sim.stopped);
}

/* The module may have forgotten the first one. */
static void a_request_is_repeated(void)
{
	stopped_server();
	sim.asked = false;
	TAP_EQ(turns_next(&sim.t), TURNS_IDLE_NS);
	pass(10 * MS, 0);
	TAP_CHECK(sim.asked && sim.stopped);
}

/* The commands that it worked for are over. */
static void a_server_that_is_held_stops(void)
{
	reset();
	apply(turns_hold(&sim.t, sim.used));
	TAP_CHECK(sim.stopped && sim.asked);
	TAP_EQ(turns_next(&sim.t), TURNS_IDLE_NS);
	give();
	TAP_CHECK(!sim.stopped);
	/* In a turn it goes on. */
	apply(turns_hold(&sim.t, sim.used));
	TAP_CHECK(!sim.stopped);
	pass(10 * MS, 10 * MS);
	TAP_CHECK(sim.asked && !sim.stopped && sim.turns == 1);
	/* It has none, and what it did for a command is the command's. */
	apply(turns_hold(&sim.t, sim.used));
	TAP_CHECK(sim.stopped);
	apply(turns_run(&sim.t));
	TAP_CHECK(!sim.stopped);
}

int main(void)
{
	tap_run(a_server_that_rests_is_left_alone, "a server that rests is left alone");
	tap_run(little_adds_up, "little work adds up to a turn");
	tap_run(work_without_a_turn_stops, "work without a turn stops");
	tap_run(a_turn_has_a_length, "a turn ends, and the next is asked for");
	tap_run(turns_without_a_pause, "the only VM is never stopped");
	tap_run(turns_bound_the_work, "turns bound the work");
	tap_run(a_turn_with_nothing_to_do_ends, "a turn with nothing to do ends");
	tap_run(a_starved_server_keeps_its_turn, "a server that has no processor keeps its turn");
	tap_run(a_look_at_once_ends_no_turn, "a look at once ends no turn");
	tap_run(a_command_that_waits_has_it_go_on, "a command that waits has the server go on");
	tap_run(a_server_that_is_held_stops, "a server that is held stops until it has a turn");
	tap_run(a_request_is_repeated, "a request is repeated until it is granted");
	return tap_done();
}
