// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slices of command streams.  A small host executes streams, whole and in slices: a row of
 * its picture is the list of the draws that touched it, and what it has bound must be the
 * same behind the last slice.  Draws that change more than rows are counted, so that a
 * band of such a draw shows.  Every slice is a heap block of exactly its size.
 */
#include <stdlib.h>

#include "random.h"
#include "tap.h"
#include "virgl/slice.h"

#define ROWS		512u
#define NR_OBJECTS	40u
#define NR_SUBS		7u
#define STREAM_MAX	4096u
#define MS		1000000u
#define ROUNDS		20000u

/* ---- a stream under construction ---- */

struct stream {
	u32 n;
	__le32 w[STREAM_MAX];
};

static void put(struct stream *s, u32 w)
{
	if (s->n == STREAM_MAX)
		abort();
	s->w[s->n++] = cpu_to_le32(w);
}

static void head(struct stream *s, u32 op, u32 obj, u32 len)
{
	put(s, len << 16 | obj << 8 | op);
}

static void put_float(struct stream *s, float f)
{
	u32 w;

	memcpy(&w, &f, sizeof(w));
	put(s, w);
}

static void put_viewport(struct stream *s, float first, float last)
{
	head(s, 4, 0, 7);
	put(s, 0);
	put_float(s, 320);
	put_float(s, (last - first) / 2);
	put_float(s, 0.5f);
	put_float(s, 320);
	put_float(s, (last + first) / 2);
	put_float(s, 0.5f);
}

static void put_scissor(struct stream *s, u32 x, u32 y, u32 x2, u32 y2)
{
	head(s, 15, 0, 3);
	put(s, 0);
	put(s, x | y << 16);
	put(s, x2 | y2 << 16);
}

static void put_rast(struct stream *s, u32 handle, u32 flags)
{
	u32 i;

	head(s, 1, 2, 9);
	put(s, handle);
	put(s, flags);
	for (i = 0; i < 7; i++)
		put(s, handle * 16 + i);
}

static void put_one(struct stream *s, u32 op, u32 obj, u32 w)
{
	head(s, op, obj, 1);
	put(s, w);
}

static void put_draw(struct stream *s, u32 vertices, u32 start)
{
	u32 i;

	head(s, 8, 0, 12);
	put(s, start);
	put(s, vertices);
	put(s, 4);
	put(s, 0);
	put(s, 1);
	for (i = 0; i < 7; i++)
		put(s, 0);
}

static void put_shader(struct stream *s, u32 handle)
{
	head(s, 31, 0, 2);
	put(s, handle);
	put(s, 1);
}

/* State that draws need: viewport, scissor, a rasterizer with handle 2 and a shader. */
static void put_setup(struct stream *s, u32 flags, float last, u32 shader)
{
	put_viewport(s, 0, last);
	put_scissor(s, 0, 0, 640, (u32)last);
	put_rast(s, 2, flags);
	put_one(s, 2, 2, 2);
	put_shader(s, shader);
}

/* ---- the host ---- */

struct host_sub {
	u32 id;
	bool live;
	u32 objects[NR_OBJECTS][10];	/* type, then the words; type 0 for none */
	u32 rast[9];
	u32 rect[2];
	u32 viewport[6];
	u32 shader[6];
	u32 writes[8];			/* what else draws change, by kind */
	u32 queries[64];
};

struct host {
	struct host_sub subs[NR_SUBS];
	u32 cur;
	u64 rows[ROWS];
	u64 rest;			/* all that is no row */
	u32 draws;
	bool error;
};

static u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static void host_new(struct host *h)
{
	memset(h, 0, sizeof(*h));
	h->subs[0].live = true;
}

static u32 *host_object(struct host_sub *s, u32 handle, bool make)
{
	u32 i, none = NR_OBJECTS;

	for (i = 0; i < NR_OBJECTS; i++) {
		if (s->objects[i][0] && s->objects[i][1] == handle)
			return s->objects[i];
		if (!s->objects[i][0])
			none = i;
	}
	if (!make)
		return NULL;
	if (none == NR_OBJECTS)
		abort();
	return s->objects[none];
}

static void host_draw(struct host *h, struct host_sub *s, const u32 *w, u32 len)
{
	u32 first = 0, last = ROWS, i;
	bool scissor = s->rast[1] & 1u << 14;
	u64 id = 1;

	h->draws++;
	for (i = 0; i <= len; i++)
		id = mix(id, w[i]);
	for (i = 0; i < 9; i++)
		id = mix(id, i == 1 ? s->rast[i] & ~(1u << 14) : i ? s->rast[i] : 0);
	for (i = 0; i < 6; i++)
		id = mix(mix(id, s->shader[i]), s->viewport[i]);
	id = mix(id, s->id);
	if (scissor) {
		first = s->rect[0] >> 16;
		last = s->rect[1] >> 16;
		/* Columns count if they cut something off. */
		if (s->rect[0] & 0xffff || (s->rect[1] & 0xffff) < 640)
			id = mix(mix(id, s->rect[0] & 0xffff), s->rect[1] & 0xffff);
	}
	if (!(s->rast[1] & 8))
		for (i = first; i < last && i < ROWS; i++)
			h->rows[i] = mix(h->rows[i], id);
	/* Whatever is done once more in a band. */
	for (i = 0; i < 8; i++)
		if (s->writes[i])
			h->rest = mix(h->rest, id);
	for (i = 0; i < 64; i++)
		if (s->queries[i])
			h->rest = mix(h->rest, id + i);
	if (s->rast[1] & 8)
		h->rest = mix(h->rest, id);
}

static bool any(const u32 *w, u32 len, u32 first, u32 every)
{
	u32 i, all = 0;

	for (i = first; i <= len; i += every)
		all |= w[i];
	return all;
}

static void host_sub_cmd(struct host *h, const u32 *w)
{
	u32 op = w[0] & 0xff, i, to = NR_SUBS;

	for (i = 0; i < NR_SUBS; i++)
		if (h->subs[i].live && h->subs[i].id == w[1])
			to = i;
	if (op == 28) {
		if (to < NR_SUBS)
			h->cur = to;
	} else if (op == 29 && to == NR_SUBS) {
		for (i = 0; i < NR_SUBS && h->subs[i].live; i++)
			;
		if (i == NR_SUBS)
			abort();
		memset(&h->subs[i], 0, sizeof(h->subs[i]));
		h->subs[i].id = w[1];
		h->subs[i].live = true;
		h->cur = i;
	} else if (op == 30 && to < NR_SUBS && w[1]) {
		h->subs[to].live = false;
		if (h->cur == to)
			h->cur = 0;
	}
}

static void host_cmd(struct host *h, const u32 *w, u32 len)
{
	struct host_sub *s = &h->subs[h->cur];
	u32 op = w[0] & 0xff, type = w[0] >> 8 & 0xff, *o;

	if (h->error)
		return;
	switch (op) {
	case 1:
		o = host_object(s, w[1], true);
		memset(o, 0, sizeof(s->objects[0]));
		o[0] = type;
		memcpy(o + 1, w + 1, (len < 9 ? len : 9) * 4);
		break;
	case 2:
		o = host_object(s, w[1], false);
		if (!o || o[0] != type) {
			h->error = true;
			break;
		}
		if (type == 2)
			memcpy(s->rast, o + 1, sizeof(s->rast));
		break;
	case 0:
		break;
	case 3:
		o = host_object(s, w[1], false);
		if (o)
			o[0] = 0;
		break;
	case 4:
		memcpy(s->viewport, w + 2, sizeof(s->viewport));
		break;
	case 8:
		host_draw(h, s, w, len);
		break;
	case 15:
		memcpy(s->rect, w + 2, sizeof(s->rect));
		break;
	case 19:
		s->queries[w[1] % 64] = 1;
		break;
	case 20:
		s->queries[w[1] % 64] = 0;
		break;
	case 25:
		s->writes[0] = any(w, len, 2, 1);
		break;
	case 26:
		s->writes[1] = w[1];
		break;
	case 28:
	case 29:
	case 30:
		host_sub_cmd(h, w);
		break;
	case 31:
		s->shader[w[2]] = w[1];
		break;
	case 34:
		if (w[1] != 5)
			s->writes[2] = any(w, len, 5, 3);
		break;
	case 35:
		if (w[1] != 5)
			s->writes[3] = any(w, len, 7, 5);
		break;
	case 40:
		s->writes[4] = any(w, len, 4, 3);
		break;
	default:
		h->rest = mix(h->rest, w[0]);
	}
}

static void host_run(struct host *h, const __le32 *stream, u32 words)
{
	u32 w[STREAM_MAX], at, i;

	for (i = 0; i < words; i++)
		w[i] = le32_to_cpu(stream[i]);
	for (at = 0; at < words; at += (w[at] >> 16) + 1)
		host_cmd(h, w + at, w[at] >> 16);
	TAP_CHECK(at == words);
}

/*
 * State that the guest can see: rows, other effects, the current context, and of each context
 * what is bound and its objects, none of which is the module's.
 */
static bool same(const struct host *a, const struct host *b)
{
	u32 i, k, m, n = 0;

	if (memcmp(a->rows, b->rows, sizeof(a->rows)) || a->rest != b->rest ||
	    a->cur != b->cur || a->error != b->error)
		return false;
	for (i = 0; i < NR_SUBS; i++) {
		const struct host_sub *s = &a->subs[i], *t = &b->subs[i];

		if (s->live != t->live)
			return false;
		if (!s->live)
			continue;
		if (s->id != t->id || memcmp(s->rast, t->rast, sizeof(s->rast)) ||
		    memcmp(s->rect, t->rect, sizeof(s->rect)) ||
		    memcmp(s->viewport, t->viewport, sizeof(s->viewport)) ||
		    memcmp(s->shader, t->shader, sizeof(s->shader)) ||
		    memcmp(s->writes, t->writes, sizeof(s->writes)) ||
		    memcmp(s->queries, t->queries, sizeof(s->queries)))
			return false;
		for (k = 0; k < NR_OBJECTS; k++) {
			const u32 *o = s->objects[k];

			n += o[0] != 0;
			n -= t->objects[k][0] != 0;
			for (m = 0; o[0] && m < NR_OBJECTS; m++)
				if (!memcmp(o, t->objects[m], sizeof(t->objects[m])))
					break;
			if (m == NR_OBJECTS)
				return false;
		}
		if (n)
			return false;
	}
	return true;
}

/* ---- cutting and executing ---- */

static struct mgpu_slicer slicer;

/* Execute the planned slices; the host gets each in a block of its own. */
static u32 run_slices(struct host *h, const struct stream *s, u32 ns, u32 bands)
{
	u32 nr = mgpu_slice_plan(&slicer, s->w, s->n, ns, bands), i, words;
	__le32 *slice;

	TAP_CHECK(nr && nr <= MGPU_SLICE_MAX);
	for (i = 0; i < nr; i++) {
		words = mgpu_slice_words(&slicer, i);
		slice = grab(words * 4);
		mgpu_slice_write(&slicer, s->w, i, slice);
		if (nr == 1)
			TAP_CHECK(words == s->n && !memcmp(slice, s->w, words * 4));
		host_run(h, slice, words);
		TAP_CHECK(!s->n || slicer.slices[i].load.ns);
		free(slice);
	}
	return nr;
}

/* Return the number of slices; @draws is set to how many draws the host executed. */
static u32 once(const struct stream *s, u32 ns, u32 bands, u32 *draws)
{
	static struct host whole, cut;
	u32 nr;

	host_new(&whole);
	host_new(&cut);
	host_run(&whole, s->w, s->n);
	nr = run_slices(&cut, s, ns, bands);
	TAP_CHECK(same(&whole, &cut));
	*draws = cut.draws;
	return nr;
}

static void no_cut_without_need(void)
{
	struct stream s = { 0 };
	u32 draws, i;

	mgpu_slicer_init(&slicer);
	TAP_CHECK(once(&s, 0, 0, &draws) == 1);
	TAP_CHECK(once(&s, 4 * MS, 0, &draws) == 1);
	put_setup(&s, 0, 480, 7);
	put_draw(&s, 4, 0);
	mgpu_slicer_init(&slicer);
	TAP_CHECK(once(&s, 4 * MS, 0, &draws) == 1 && draws == 1);
	for (i = 0; i < 100; i++)
		put_draw(&s, 4, i);
	mgpu_slicer_init(&slicer);
	TAP_CHECK(once(&s, 0, 0, &draws) == 1 && draws == 101);
	mgpu_slicer_init(&slicer);
	TAP_CHECK(once(&s, 4 * MS, 0, &draws) > 1 && draws == 101);
}

/* Slices of a stream of which each draw takes @ns, as often as it is sent. */
static u32 learned(const struct stream *s, u64 ns, u32 rounds, u64 *longest)
{
	static struct host h;
	u32 nr = 0, i, k, at;
	u64 took;

	host_new(&h);
	while (rounds--) {
		nr = mgpu_slice_plan(&slicer, s->w, s->n, 4 * MS, 0);
		*longest = 0;
		for (i = 0; i < nr; i++) {
			const struct mgpu_slice *slice = &slicer.slices[i];

			took = 10000;
			for (k = 0; k < slice->head_words;
			     k += (le32_to_cpu(s->w[at]) >> 16) + 1) {
				at = slice->head + k;
				took += (le32_to_cpu(s->w[at]) & 0xff) == 8 ? ns : 0;
			}
			if (slice->split >= 0)
				took += ns / slicer.bands[slice->split].nr;
			if (took > *longest)
				*longest = took;
			mgpu_slice_learn(&slicer, &slice->load, took, true);
		}
		mgpu_slice_commit(&slicer);
	}
	return nr;
}

static void costs_are_learned(void)
{
	struct stream s = { 0 };
	u64 longest;
	u32 i;

	put_setup(&s, 0, 1080, 7);
	for (i = 0; i < 40; i++)
		put_draw(&s, 6, i);
	/* Draws of 1 ms: 4 in each slice. */
	mgpu_slicer_init(&slicer);
	i = learned(&s, 1 * MS, 20, &longest);
	if (!TAP_CHECK(i >= 9 && i <= 14 && longest < 6 * MS))
		tap_diag("%u slices, %" PRIu64 " ns", i, longest);
	/* And cheap ones again. */
	i = learned(&s, 10000, 20, &longest);
	TAP_CHECK(i <= 2);

	/* A draw that is too long alone. */
	memset(&s, 0, sizeof(s));
	put_setup(&s, 0, 1080, 9);
	put_draw(&s, 4, 0);
	mgpu_slicer_init(&slicer);
	i = learned(&s, 90 * MS, 20, &longest);
	if (!TAP_CHECK(i >= 20 && i <= 30 && longest < 6 * MS))
		tap_diag("%u slices, %" PRIu64 " ns", i, longest);
	/* The same with vertices that would cost more than it saves. */
	memset(&s, 0, sizeof(s));
	put_setup(&s, 0, 1080, 9);
	put_draw(&s, 2000000, 0);
	mgpu_slicer_init(&slicer);
	i = learned(&s, 90 * MS, 20, &longest);
	TAP_CHECK(i == 1);
}

/*
 * Slices of a stream of one draw of @ns, as often as it is sent to a device to which the way
 * takes @way.  @idle: the device has all slices at once, and the guest then sends a stream without
 * work, which takes so long; 0: the device has one slice at a time, and there is no other stream.
 * @probes: streams of the last 128 that had a probe
 */
static u32 learned_far(u64 ns, u64 way, u64 idle, u32 *probes)
{
	struct stream work = { 0 }, none = { 0 };
	u32 nr = 0, i, rounds;
	bool probe, behind;

	put_setup(&none, 0, 1080, 9);
	put_setup(&work, 0, 1080, 9);
	put_draw(&work, 4, 0);
	mgpu_slicer_init(&slicer);
	*probes = 0;
	for (rounds = 0; rounds < 168; rounds++) {
		if (idle) {
			mgpu_slice_plan(&slicer, none.w, none.n, 4 * MS, 0);
			mgpu_slice_commit(&slicer);
			mgpu_slice_learn(&slicer, &slicer.slices[0].load, idle, false);
		}
		nr = mgpu_slice_plan(&slicer, work.w, work.n, 4 * MS, 0);
		mgpu_slice_commit(&slicer);
		probe = slicer.slices[0].probe;
		*probes += probe && rounds >= 40;
		for (i = 0; i < nr; i++) {
			behind = idle && i;
			mgpu_slice_learn(&slicer, &slicer.slices[i].load, (behind ? 0 : way) +
					 (probe && !i ? 0 : ns / (nr - probe)), behind);
		}
	}
	return nr;
}

static void way_is_no_cost(void)
{
	u32 probes, nr = learned_far(1 * MS, 12 * MS, 12 * MS, &probes);

	if (!TAP_CHECK(nr == 1))
		tap_diag("1 ms of work, 12 ms of way: %u slices", nr);
	/* Slices as long as the way. */
	nr = learned_far(90 * MS, 12 * MS, 12 * MS, &probes);
	if (!TAP_CHECK(nr >= 7 && nr <= 10))
		tap_diag("90 ms of work, 12 ms of way: %u slices", nr);
	/* A long wait is another VM's work, and does not hide the guest's. */
	nr = learned_far(90 * MS, 0, 1000 * MS, &probes);
	if (!TAP_CHECK(nr >= 3))
		tap_diag("90 ms of work, 1 s without work: %u slices", nr);
}

/* A guest whose streams all draw tells nothing of the way. */
static void way_is_probed(void)
{
	u32 probes, nr = learned_far(3 * MS, 5 * MS, 0, &probes);

	if (!TAP_CHECK(nr == 1))
		tap_diag("3 ms of work, 5 ms of way: %u slices", nr);
	TAP_EQ(probes, 0);
	nr = learned_far(90 * MS, 12 * MS, 0, &probes);
	if (!TAP_CHECK(nr >= 7 && nr <= 10))
		tap_diag("90 ms of work, 12 ms of way: %u slices", nr);
	/* One stream of 64. */
	TAP_EQ(probes, 2);
}

static void costs_are_bounded(void)
{
	static const u64 times[] = { 0, 1, MS, U64_MAX, U64_MAX / 2, 1ull << 56 };
	struct stream s = { 0 };
	u32 draws, i, k;

	put_setup(&s, 0, 1080, 9);
	for (i = 0; i < 100; i++)
		put_draw(&s, UINT32_MAX, i);
	mgpu_slicer_init(&slicer);
	for (i = 0; i < 400; i++) {
		TAP_CHECK(once(&s, 1 + i * MS, 0, &draws) <= MGPU_SLICE_MAX);
		for (k = 0; k < slicer.nr; k++)
			mgpu_slice_learn(&slicer, &slicer.slices[k].load,
					 times[(i / 50 + k) % 6], i % 2);
		for (k = 0; k < MGPU_SLICE_COSTS; k++)
			TAP_CHECK(!slicer.costs[k].tag ||
				  (slicer.costs[k].ns >= 1000 &&
				   slicer.costs[k].ns <= 1000000000));
	}
}

static void bands_make_up_the_draw(void)
{
	struct stream s;
	u32 draws, scissor, last;

	for (scissor = 0; scissor < 2; scissor++) {
		for (last = 64; last <= 512; last += 13) {
			s.n = 0;
			put_setup(&s, scissor << 14, last, 7);
			if (scissor)
				put_scissor(&s, 5, last / 7, 600, last - last / 5);
			put_draw(&s, 4, 1);
			put_draw(&s, 4, 2);
			/* Behind the draw all is as it was. */
			put_one(&s, 2, 2, 2);
			put_draw(&s, 4, 3);
			mgpu_slicer_init(&slicer);
			once(&s, 0, 6, &draws);
			if (!TAP_CHECK(draws > 3))
				tap_diag("up to row %u: %u draws", last, draws);
		}
	}
}

/* Streams after which a draw must stay whole, in front of the draw. */
static void whole_query(struct stream *s)
{
	put_one(s, 19, 0, 33);
}

static void whole_streamout(struct stream *s)
{
	head(s, 25, 0, 2);
	put(s, 0);
	put(s, 9);
}

static void whole_condition(struct stream *s)
{
	head(s, 26, 0, 3);
	put(s, 33);
	put(s, 0);
	put(s, 0);
}

static void whole_buffers(struct stream *s)
{
	head(s, 34, 0, 5);
	put(s, 1);
	put(s, 0);
	put(s, 0);
	put(s, 64);
	put(s, 5);
}

static void whole_images(struct stream *s)
{
	u32 i;

	head(s, 35, 0, 7);
	put(s, 0);
	for (i = 0; i < 5; i++)
		put(s, 0);
	put(s, 5);
}

static void whole_atomics(struct stream *s)
{
	head(s, 40, 0, 4);
	put(s, 0);
	put(s, 0);
	put(s, 4);
	put(s, 5);
}

static void whole_discard(struct stream *s)
{
	put_rast(s, 3, 8);
	put_one(s, 2, 2, 3);
}

/* The state is bound, but has no name any more. */
static void whole_destroyed(struct stream *s)
{
	put_one(s, 3, 2, 2);
}

static void whole_remade(struct stream *s)
{
	put_rast(s, 2, 1);
}

static void whole_renamed(struct stream *s)
{
	u32 i;

	head(s, 1, 7, 9);
	put(s, 2);
	for (i = 0; i < 8; i++)
		put(s, i);
}

static void whole_our_handle(struct stream *s)
{
	u32 i;

	head(s, 1, 3, 5);
	put(s, 2 | 1u << 31);
	for (i = 0; i < 4; i++)
		put(s, i);
}

static void whole_unknown_sub(struct stream *s)
{
	put_one(s, 28, 0, 77);
}

static void whole_viewports(struct stream *s)
{
	u32 i;

	head(s, 4, 0, 13);
	put(s, 0);
	for (i = 0; i < 12; i++)
		put_float(s, 100);
}

static void whole_scissors(struct stream *s)
{
	head(s, 15, 0, 3);
	put(s, 1);
	put(s, 0);
	put(s, 9 | 9 << 16);
}

static void draws_stay_whole(void)
{
	static void (*const before[])(struct stream *s) = {
		whole_query, whole_streamout, whole_condition, whole_buffers,
		whole_images, whole_atomics, whole_discard, whole_destroyed,
		whole_remade, whole_renamed, whole_our_handle, whole_unknown_sub,
		whole_viewports, whole_scissors,
	};
	struct stream s;
	u32 draws, i, k;

	for (i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		for (k = 0; k < 2; k++) {
			s.n = 0;
			put_setup(&s, k << 14, 480, 7);
			before[i](&s);
			put_draw(&s, 4, 1);
			mgpu_slicer_init(&slicer);
			mgpu_slice_plan(&slicer, s.w, s.n, 0, 8);
			TAP_CHECK(!slicer.nr_bands);
			/* The host here has one viewport and one scissor rectangle. */
			if (before[i] != whole_viewports && before[i] != whole_scissors) {
				mgpu_slicer_init(&slicer);
				once(&s, 0, 8, &draws);
				TAP_CHECK(draws == 1);
			}
		}
	}
	/* Without a scissor rectangle, the one to begin with is restored. */
	for (k = 0; k < 2; k++) {
		s.n = 0;
		put_viewport(&s, 0, 480);
		put_rast(&s, 2, k << 14);
		put_one(&s, 2, 2, 2);
		put_draw(&s, 4, 1);
		mgpu_slicer_init(&slicer);
		once(&s, 0, 8, &draws);
		TAP_EQ(draws, k ? 1 : 8);
	}
	/* A query that has ended counts nothing; another one may have. */
	s.n = 0;
	put_setup(&s, 0, 480, 7);
	put_one(&s, 19, 0, 33);
	put_one(&s, 20, 0, 34);
	put_draw(&s, 4, 1);
	put_one(&s, 20, 0, 33);
	put_draw(&s, 4, 2);
	mgpu_slicer_init(&slicer);
	once(&s, 0, 8, &draws);
	TAP_CHECK(draws == 9);
}

/* A plan that was not committed leaves no trace. */
static void plans_can_be_dropped(void)
{
	struct stream s = { 0 }, draw = { 0 };

	put_draw(&draw, 4, 1);
	put_setup(&s, 0, 480, 7);
	mgpu_slicer_init(&slicer);
	mgpu_slice_plan(&slicer, s.w, s.n, 0, 8);
	mgpu_slice_plan(&slicer, draw.w, draw.n, 0, 8);
	TAP_CHECK(!slicer.nr_bands);
	mgpu_slice_plan(&slicer, s.w, s.n, 0, 8);
	mgpu_slice_commit(&slicer);
	mgpu_slice_plan(&slicer, draw.w, draw.n, 0, 8);
	TAP_CHECK(slicer.nr_bands == 1);
	mgpu_slice_plan(&slicer, draw.w, draw.n, 0, 8);
	TAP_CHECK(slicer.nr_bands == 1);
}

static void random_cmd(struct stream *s)
{
	static void (*const odd[])(struct stream *s) = {
		whole_query, whole_streamout, whole_condition, whole_buffers,
		whole_images, whole_atomics, whole_discard, whole_our_handle,
	};
	u32 handle = 2 + below(8), i;

	switch (below(22)) {
	case 0:
		put_rast(s, handle, below(2) << 14 | below(8));
		put_one(s, 2, 2, handle);
		break;
	case 1:
		put_viewport(s, below(200), 200 + below(400));
		break;
	case 2:
	case 3:
		put_scissor(s, below(30), below(200),
			    500 + below(300), 200 + below(400));
		break;
	case 4:
		put_one(s, 3, 2, handle);
		break;
	case 5:
		head(s, 1, 3, 5);
		put(s, handle + 4);
		for (i = 0; i < 4; i++)
			put(s, i);
		break;
	case 6:
		put_one(s, 28, 0, below(NR_SUBS));
		break;
	case 7:
		put_one(s, 29, 0, below(NR_SUBS));
		break;
	case 8:
		if (!below(4))
			put_one(s, 30, 0, below(NR_SUBS));
		break;
	case 9:
		if (!below(6))
			odd[below(8)](s);
		break;
	case 10:
		put_one(s, 20, 0, 33);
		head(s, 25, 0, 1);
		put(s, 0);
		head(s, 26, 0, 3);
		put(s, 0);
		put(s, 0);
		put(s, 0);
		break;
	case 11:
		put_shader(s, handle);
		break;
	case 12:
		head(s, 0, 0, below(5));
		for (i = le32_to_cpu(s->w[s->n - 1]) >> 16; i; i--)
			put(s, 0);
		break;
	default:
		put_draw(s, 3 + below(90), below(1000));
	}
}

static void random_streams(void)
{
	static struct host whole, cut;
	u64 bands = 0, slices = 0;
	struct stream s;
	u32 i, k, n, nr;

	for (i = 0; i < ROUNDS; i++) {
		mgpu_slicer_init(&slicer);
		host_new(&whole);
		host_new(&cut);
		/* A context's state stays from stream to stream. */
		for (k = 0; k < 4; k++) {
			s.n = 0;
			if (below(3))
				put_setup(&s, below(2) << 14, 480,
					  below(4));
			for (n = below(40); n; n--)
				random_cmd(&s);
			host_run(&whole, s.w, s.n);
			nr = below(2) ?
				run_slices(&cut, &s, 0, 1 + below(20)) :
				run_slices(&cut, &s, below(3) * 400000, 0);
			mgpu_slice_commit(&slicer);
			for (n = 0; n < nr; n++)
				mgpu_slice_learn(&slicer, &slicer.slices[n].load,
						 below(20) * MS, below(2));
			slices += nr;
			bands += slicer.nr_bands;
			TAP_NEED(same(&whole, &cut));
			if (whole.error)
				break;
		}
	}
	TAP_CHECK(bands > ROUNDS && slices > 10 * ROUNDS);
}

int main(void)
{
	rng = 1;
	tap_run(no_cut_without_need, "a stream is not cut without need");
	tap_run(costs_are_learned, "costs are learned, and slices get the wanted length");
	tap_run(way_is_no_cost, "the way to the device is not learned as a cost");
	tap_run(way_is_probed, "the way to the device is probed where all streams draw");
	tap_run(costs_are_bounded, "costs and the number of slices are bounded");
	tap_run(bands_make_up_the_draw, "bands make up the draw, and leave the state as it was");
	tap_run(draws_stay_whole, "draws that change more than the picture stay whole");
	tap_run(plans_can_be_dropped, "a plan that is dropped leaves no trace");
	tap_run(random_streams, "random streams draw the same in slices");
	return tap_done();
}
