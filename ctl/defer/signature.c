// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "signature.h"

/* Find the longest run of bytes that the linker does not change. */
static size_t longest_run(const struct signature *sig, size_t *start)
{
	size_t best = 0, from = 0, i;

	for (i = 0; i <= sig->len; i++) {
		if (i < sig->len && sig->mask[i])
			continue;
		if (i - from > best) {
			best = i - from;
			*start = from;
		}
		from = i + 1;
	}
	return best;
}

static bool is_at(const struct signature *sig, const uint8_t *code)
{
	size_t i;

	for (i = 0; i < sig->len; i++)
		if ((code[i] ^ sig->bytes[i]) & sig->mask[i])
			return false;
	return true;
}

static void find_places(struct signature *sig, const struct image_segment *s)
{
	size_t start = 0, run = longest_run(sig, &start), left = s->end - s->start;
	const uint8_t *at = s->bytes, *end = s->bytes + left, *hit;

	if (!run || left < sig->len)
		return;
	/* Places where the run can be of a section that lies within the segment. */
	at += start;
	end -= sig->len - start - run;
	while (sig->nr_seen <= SIGNATURE_PLACES &&
	       (hit = memmem(at, (size_t)(end - at), sig->bytes + start, run))) {
		if (is_at(sig, hit - start)) {
			if (sig->nr_seen < SIGNATURE_PLACES)
				sig->places[sig->nr_seen] =
					s->start + (uint64_t)(hit - start - s->bytes);
			sig->nr_seen++;
		}
		at = hit + 1;
	}
}

/* Return the place of the other section that a reference from this place asks for. */
static uint64_t asked(const struct signature_ref *ref, const struct image *img, uint64_t place)
{
	const uint8_t *p;
	uint32_t field;
	size_t len;

	p = image_bytes(img, place + ref->offset, &len);
	if (!p || len < sizeof(field))
		return 0;
	memcpy(&field, p, sizeof(field));
	return place + (uint64_t)(int64_t)(int32_t)(field - ref->value);
}

static bool may_be_at(const struct signature *sig, const struct image *img, uint64_t place)
{
	const uint8_t *code;
	unsigned int i;
	size_t len;

	if (sig->nr_places > SIGNATURE_PLACES) {
		code = image_bytes(img, place, &len);
		return code && len >= sig->len && is_at(sig, code);
	}
	for (i = 0; i < sig->nr_places; i++)
		if (sig->places[i] == place)
			return true;
	return false;
}

static bool fits(const struct signature *sigs, const struct signature *sig,
		 const struct image *img, uint64_t place)
{
	unsigned int i;

	for (i = 0; i < sig->nr_refs; i++)
		if (!may_be_at(&sigs[sig->refs[i].target], img, asked(&sig->refs[i], img, place)))
			return false;
	return true;
}

/* Drop the places that do not fit; return whether there was one. */
static bool drop_places(struct signature *sigs, struct signature *sig, const struct image *img)
{
	unsigned int i = 0, before = sig->nr_places;
	uint64_t place;

	if (before > SIGNATURE_PLACES)
		return false;
	while (i < sig->nr_places) {
		place = sig->places[i];
		if (fits(sigs, sig, img, place)) {
			i++;
			continue;
		}
		sig->places[i] = sig->places[--sig->nr_places];
		sig->places[sig->nr_places] = place;
	}
	return sig->nr_places != before;
}

static bool is_strong(const struct signature *sig)
{
	size_t i, n = sizeof(uint32_t) * sig->nr_refs;

	for (i = 0; i < sig->len && n < SIGNATURE_STRONG; i++)
		n += sig->mask[i] & 1;
	return n >= SIGNATURE_STRONG;
}

bool signature_sure(const struct signature *sig)
{
	return sig->nr_places == 1 && sig->confirmed;
}

/* Have a section be at one of its places, since another one refers to it there. */
static void set_place(struct signature *sig, uint64_t place)
{
	unsigned int i, nr = sig->nr_seen < SIGNATURE_PLACES ? sig->nr_seen : SIGNATURE_PLACES;

	for (i = 0; i < nr && sig->places[i] != place; i++)
		;
	/* Of more places than are known, the last one gives way. */
	if (i == nr)
		i--;
	sig->places[i] = sig->places[0];
	sig->places[0] = place;
	sig->nr_places = 1;
	sig->confirmed = true;
}

/*
 * Confirm what a section refers to, to the only one of its places that this can be.  Of a section
 * with more places than are known, drop_places() has not looked at what the place refers to.
 */
static bool confirm(struct signature *sigs, const struct signature *sig, const struct image *img)
{
	bool changed = false;
	unsigned int i;

	for (i = 0; i < sig->nr_refs; i++) {
		struct signature *other = &sigs[sig->refs[i].target];
		uint64_t place = asked(&sig->refs[i], img, sig->places[0]);

		if (signature_sure(other) || !may_be_at(other, img, place) ||
		    !fits(sigs, other, img, place))
			continue;
		set_place(other, place);
		changed = true;
	}
	return changed;
}

void signatures_find(struct signature *sigs, unsigned int nr, const struct image *img)
{
	bool changed;
	unsigned int i, k;

	for (i = 0; i < nr; i++) {
		sigs[i].nr_seen = 0;
		for (k = 0; k < img->nr_segments; k++)
			if (img->segments[k].executable)
				find_places(&sigs[i], &img->segments[k]);
		sigs[i].nr_places = sigs[i].nr_seen;
	}
	do {
		changed = false;
		for (i = 0; i < nr; i++)
			changed |= drop_places(sigs, &sigs[i], img);
	} while (changed);
	for (i = 0; i < nr; i++)
		sigs[i].confirmed = sigs[i].nr_places == 1 && is_strong(&sigs[i]);
	do {
		changed = false;
		for (i = 0; i < nr; i++)
			if (signature_sure(&sigs[i]))
				changed |= confirm(sigs, &sigs[i], img);
	} while (changed);
}

static bool is_taken(const struct signature *sigs, unsigned int nr, uint64_t place)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (signature_sure(&sigs[i]) && sigs[i].places[0] == place)
			return true;
	return false;
}

const struct signature *signatures_doubtful(const struct signature *sigs, unsigned int nr)
{
	unsigned int i, k;

	for (i = 0; i < nr; i++) {
		if (!sigs[i].nr_names || signature_sure(&sigs[i]))
			continue;
		for (k = 0; k < sigs[i].nr_seen; k++)
			if (k >= SIGNATURE_PLACES || !is_taken(sigs, nr, sigs[i].places[k]))
				return &sigs[i];
	}
	return NULL;
}
