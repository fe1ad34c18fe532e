// SPDX-License-Identifier: GPL-2.0-only
/* Word segmentation. */
#include <string.h>

#include "checksum.h"
#include "words.h"

/**
 * struct scale - words for the values of a figure
 * @first: id of the first word
 * @words: number of words
 * @lowest: value of the first word
 * @per: words per unit
 */
struct scale {
	uint16_t first;
	uint16_t words;
	double lowest;
	double per;
};

/* Words that are not on a scale. */
enum {
	WORD_NONE,		/* an empty place */
	WORD_UNKNOWN_CPU,	/* never measured */
	WORD_UNKNOWN_ENGINE,
	WORD_INACTIVE,
	WORD_SCALES,
};

/* Scales are logarithms with base 2: seconds, frames per second, ratio, number + 1. */
#define COST_WORDS	24
#define FPS_WORDS	15
#define WEIGHT_WORDS	13
#define NUMBER_WORDS	49
#define COST_CPU_FIRST		WORD_SCALES
#define COST_ENGINE_FIRST	(COST_CPU_FIRST + COST_WORDS)
#define FPS_FIRST		(COST_ENGINE_FIRST + COST_WORDS)
#define WEIGHT_FIRST		(FPS_FIRST + FPS_WORDS)
#define NUMBER_FIRST		(WEIGHT_FIRST + WEIGHT_WORDS)
#define TEXT_FIRST		(NUMBER_FIRST + NUMBER_WORDS)

static const struct scale cost_scale[LEARN_RESOURCES] = {
	[LEARN_CPU] = { COST_CPU_FIRST, COST_WORDS, -20, 1 },
	[LEARN_ENGINE] = { COST_ENGINE_FIRST, COST_WORDS, -20, 1 },
};

static const struct scale fps_scale = { FPS_FIRST, FPS_WORDS, -4, 1 };
static const struct scale weight_scale = { WEIGHT_FIRST, WEIGHT_WORDS, -8, 1 };
/* in powers of the square root of 2 */
static const struct scale number_scale = { NUMBER_FIRST, NUMBER_WORDS, 0, 2 };

static struct learn_word plain(uint16_t id)
{
	return (struct learn_word){ .id = id, .next = id };
}

static struct learn_word on_scale(const struct scale *s, double value)
{
	double place = fmin(fmax((log2(value) - s->lowest) * s->per, 0), s->words - 1);
	uint16_t at = (uint16_t)place;

	/* of what is not finite, too: fmax(NAN, 0) is 0 */
	return (struct learn_word){
		.id = (uint16_t)(s->first + at),
		.next = (uint16_t)(s->first + (at + 1 < s->words ? at + 1 : at)),
		.part = (float)(place - at),
	};
}

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static unsigned char lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : c;
}

static bool is_letter(unsigned char c)
{
	return c >= 0x80 || (lower(c) >= 'a' && lower(c) <= 'z');
}

static size_t take_number(const char *text, size_t len, struct learn_word *word)
{
	double number = 0;
	size_t n = 0;

	for (; n < len && is_digit((unsigned char)text[n]); n++)
		number = number * 10 + (text[n] - '0');
	*word = on_scale(&number_scale, number + 1);
	return n;
}

static size_t take_word(const char *text, size_t len, struct learn_word *word)
{
	uint64_t sum = CHECKSUM_START;
	size_t n = 0;

	for (; n < len && is_letter((unsigned char)text[n]); n++) {
		unsigned char c = lower((unsigned char)text[n]);

		sum = checksum_add(sum, &c, 1);
	}
	sum ^= sum >> 32;
	*word = plain((uint16_t)(TEXT_FIRST + sum % (LEARN_VOCABULARY - TEXT_FIRST)));
	return n;
}

static void read_text(const char *text, size_t len, struct learn_word *word)
{
	size_t places = 0, i = 0;

	memset(word, 0, LEARN_WORDS_TEXT * sizeof(*word));
	while (i < len && places < LEARN_WORDS_TEXT) {
		unsigned char c = (unsigned char)text[i];

		if (is_digit(c))
			i += take_number(text + i, len - i, &word[places++]);
		else if (is_letter(c))
			i += take_word(text + i, len - i, &word[places++]);
		else
			i++;
	}
}

void learn_words(const struct learn_task *t, double mean_weight,
		 struct learn_word word[LEARN_WORDS])
{
	bool known = t->periods > 0;

	word[0] = known ? on_scale(&cost_scale[LEARN_ENGINE], t->cost[LEARN_ENGINE]) :
		plain(WORD_UNKNOWN_ENGINE);
	word[1] = known ? on_scale(&cost_scale[LEARN_CPU], t->cost[LEARN_CPU]) :
		plain(WORD_UNKNOWN_CPU);
	word[2] = t->fps > 0 ? on_scale(&fps_scale, t->fps) : plain(WORD_INACTIVE);
	word[3] = on_scale(&weight_scale, t->weight / mean_weight);
	read_text(t->text, strnlen(t->text, sizeof(t->text)), word + LEARN_WORDS_FIGURES);
}

int learn_words_compare(const struct learn_word *a, const struct learn_word *b)
{
	for (size_t l = 0; l < LEARN_WORDS; l++) {
		if (a[l].id != b[l].id)
			return a[l].id < b[l].id ? -1 : 1;
		if (a[l].part < b[l].part || a[l].part > b[l].part)
			return a[l].part < b[l].part ? -1 : 1;
	}
	return 0;
}
