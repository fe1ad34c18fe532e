/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slices of a command stream: parts of bounded cost that a host gets one by one, so that
 * another VM's job can go in between.  Pure: builds in user space too.
 */
#ifndef MGPU_VIRGL_SLICE_H
#define MGPU_VIRGL_SLICE_H

#include "virgl/virgl.h"

#define MGPU_SLICE_MAX		64	/* slices of a stream */
#define MGPU_SLICE_PARTS	4
#define MGPU_SLICE_COSTS	128	/* learned costs of a context, a power of 2 */
#define MGPU_SLICE_SUBS		4	/* sub-contexts whose state is followed */
#define MGPU_SLICE_RASTERIZERS	24	/* of each of them */
#define MGPU_SLICE_QUERIES	8
#define MGPU_SLICE_STAGES	6	/* of shaders */
#define MGPU_SLICE_RAST_WORDS	9	/* of a rasterizer: its handle and its state */

/**
 * struct mgpu_slice_cost - learned cost of a kind of command
 * @tag: the kind, 0 for an entry that is not in use
 * @ns: cost of a command, or of 64 KiB for a transfer, nanoseconds
 */
struct mgpu_slice_cost {
	u32 tag;
	u32 ns;
};

/**
 * struct mgpu_slice_part - share of a kind of command in a slice's expected cost
 * @tag: the kind, 0 for an entry that is not in use
 * @each: cost of such a command as it was known, see struct mgpu_slice_cost
 * @ns: expected cost of all such commands of the slice, nanoseconds
 */
struct mgpu_slice_part {
	u32 tag;
	u32 each;
	u32 ns;
};

/**
 * struct mgpu_slice_load - expected cost of a slice
 * @ns: of all commands, nanoseconds
 * @parts: the kinds that cost most
 */
struct mgpu_slice_load {
	u64 ns;
	struct mgpu_slice_part parts[MGPU_SLICE_PARTS];
};

/**
 * struct mgpu_slice_rect - scissor rectangle
 * @min: left column, and upper row << 16
 * @max: first column on the right of it, and first row below it << 16
 */
struct mgpu_slice_rect {
	u32 min;
	u32 max;
};

/**
 * struct mgpu_slice_band - a draw that is split into bands of rows
 * @at: word of the stream with the draw's header
 * @words: length of the draw with its header
 * @nr: number of bands
 * @first: first row that the draw may touch
 * @last: row behind the last one
 * @rast: the rasterizer that is bound
 * @rect: the scissor rectangle that is set
 */
struct mgpu_slice_band {
	u32 at;
	u32 words;
	u32 nr;
	u32 first;
	u32 last;
	u32 rast[MGPU_SLICE_RAST_WORDS];
	struct mgpu_slice_rect rect;
};

/**
 * struct mgpu_slice - a part of a stream: commands, a band of a draw, and commands behind
 * the draw
 * @head: word of the stream at which the first commands begin
 * @head_words: their length, may be 0
 * @split: the band's draw in plan->bands, -1 for a slice without a band
 * @band: number of the band, from 0
 * @tail_words: length of the commands behind the draw, may be 0
 * @probe: it is a NOP of the module's own, and has nothing of the stream
 * @load: expected cost
 */
struct mgpu_slice {
	u32 head;
	u32 head_words;
	s32 split;
	u32 band;
	u32 tail_words;
	bool probe;
	struct mgpu_slice_load load;
};

/**
 * struct mgpu_slice_sub - what is known of a sub-context
 * @id: the guest's number
 * @live: the entry is in use
 * @whole: draws are not split: not all of the state is known, or handles are in use that
 *	the module needs
 * @rast: handle of the bound rasterizer, 0 if it is not known
 * @shader: handles of the bound shaders
 * @rect: first scissor rectangle; empty in the beginning
 * @first: first row of the viewport
 * @last: row behind its last one
 * @streamout: a draw writes to stream output targets
 * @condition: draws depend on a query
 * @queries: handles of queries that count
 * @rasts: rasterizers
 * @next_rast: entry of @rasts that the next rasterizer takes
 */
struct mgpu_slice_sub {
	u32 id;
	bool live;
	bool whole;
	u32 rast;
	u32 shader[MGPU_SLICE_STAGES];
	struct mgpu_slice_rect rect;
	u32 first;
	u32 last;
	bool streamout;
	bool condition;
	u32 queries[MGPU_SLICE_QUERIES];
	u32 rasts[MGPU_SLICE_RASTERIZERS][MGPU_SLICE_RAST_WORDS];
	u32 next_rast;
};

/**
 * struct mgpu_slice_state - what is known of a context
 * @subs: sub-contexts
 * @cur: entry of @subs of the current one; if that is not followed, of the one before it
 * @lost: there were more sub-contexts than @subs has entries
 */
struct mgpu_slice_state {
	struct mgpu_slice_sub subs[MGPU_SLICE_SUBS];
	u32 cur;
	bool lost;
};

/**
 * struct mgpu_slicer - cuts the streams of a context
 * @costs: learned costs
 * @way_ns: time of a slice without work, nanoseconds: the way to the device and back; 0: not known
 * @since_probe: streams that were cut since one had a probe, with that one; 0: the next gets one
 * @state: state behind the last stream that the host gets, and behind the planned one
 * @now: which of @state is valid
 * @slices: the plan
 * @nr: length of @slices
 * @bands: draws of the plan that are split
 * @nr_bands: length of @bands
 */
struct mgpu_slicer {
	struct mgpu_slice_cost costs[MGPU_SLICE_COSTS];
	u64 way_ns;
	u32 since_probe;
	struct mgpu_slice_state state[2];
	u32 now;
	struct mgpu_slice slices[MGPU_SLICE_MAX];
	u32 nr;
	struct mgpu_slice_band bands[MGPU_SLICE_MAX / 2];
	u32 nr_bands;
};

void mgpu_slicer_init(struct mgpu_slicer *s);
u32 mgpu_slice_plan(struct mgpu_slicer *s, const __le32 *stream, u32 words, u32 slice_ns,
		    u32 bands);
void mgpu_slice_commit(struct mgpu_slicer *s);
u32 mgpu_slice_words(const struct mgpu_slicer *s, u32 i);
void mgpu_slice_write(const struct mgpu_slicer *s, const __le32 *stream, u32 i, __le32 *to);
void mgpu_slice_learn(struct mgpu_slicer *s, const struct mgpu_slice_load *load, u64 ns,
		      bool behind);

#endif /* MGPU_VIRGL_SLICE_H */
