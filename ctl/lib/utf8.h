/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LIB_UTF8_H
#define LIB_UTF8_H

#include <stddef.h>

/* Length of the valid UTF-8 character at @s, which is terminated; 0 if there is none. */
static inline size_t utf8_len(const unsigned char *s)
{
	size_t len = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : (*s & 0xf0) == 0xe0 ? 3 :
		     *s >= 0xf0 && *s < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, and beyond U+10FFFF */
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) ||
	    (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

/* Replace bytes that are no UTF-8, and control characters, by question marks. */
static inline void utf8_clean(char *text)
{
	size_t len;

	for (unsigned char *s = (unsigned char *)text; *s; s += len) {
		len = *s < 0x20 || *s == 0x7f ? 0 : utf8_len(s);
		if (len)
			continue;
		*s = '?';
		len = 1;
	}
}

#endif /* LIB_UTF8_H */
