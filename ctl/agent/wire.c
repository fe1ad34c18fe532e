// SPDX-License-Identifier: GPL-2.0-only
/* Frames between mgpu-agent and mgpu-poold. */
#include <endian.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"
#include "wire.h"

#define MAGIC		"mga1"
#define SIGNED_HEADER	16	/* bytes of the header that the HMAC covers */

/* ---- keys ---- */

static int derive(const unsigned char *secret, const char *info, unsigned char *key)
{
	gnutls_datum_t prk = { (unsigned char *)secret, WIRE_KEY };
	gnutls_datum_t text = { (unsigned char *)info, (unsigned int)strlen(info) };

	return gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &prk, &text, key, WIRE_KEY) ? -EIO : 0;
}

int wire_keys(const unsigned char key[WIRE_KEY], struct wire_keys *keys)
{
	static const char salt_text[] = "mgpu-agent 1";
	gnutls_datum_t secret = { (unsigned char *)key, WIRE_KEY };
	gnutls_datum_t salt = { (unsigned char *)salt_text, sizeof(salt_text) - 1 };
	unsigned char prk[WIRE_KEY];
	int ret = -EIO;

	if (!gnutls_hkdf_extract(GNUTLS_MAC_SHA256, &secret, &salt, prk))
		ret = derive(prk, "tls", keys->tls);
	if (!ret)
		ret = derive(prk, "sign", keys->sign);
	gnutls_memset(prk, 0, sizeof(prk));
	return ret;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Take a byte from two hexadecimal digits; -1: they are none. */
static int hex_byte(const char *text)
{
	int high = hex_digit(text[0]);
	int low = high < 0 ? -1 : hex_digit(text[1]);

	return low < 0 ? -1 : high << 4 | low;
}

int wire_read_key(const char *text, char vm[64], unsigned char key[WIRE_KEY])
{
	const char *colon = strrchr(text, ':');
	const char *hex = colon ? colon + 1 : text;
	size_t name = colon ? (size_t)(colon - text) : 0;

	if (name > 63 || (colon && !name) || strspn(hex, "0123456789abcdefABCDEF") != 2 * WIRE_KEY)
		return -EINVAL;
	if (hex[2 * WIRE_KEY + strspn(hex + 2 * WIRE_KEY, " \t\r\n")])
		return -EINVAL;
	for (size_t i = 0; i < WIRE_KEY; i++)
		key[i] = (unsigned char)hex_byte(hex + 2 * i);
	memcpy(vm, text, name);
	vm[name] = '\0';
	return 0;
}

/* ---- headers and signatures ---- */

int wire_header(const unsigned char *frame, struct wire_header *h)
{
	uint32_t length;
	uint64_t seq;

	memcpy(&length, frame + 4, sizeof(length));
	memcpy(&seq, frame + 8, sizeof(seq));
	h->length = be32toh(length);
	h->seq = be64toh(seq);
	if (memcmp(frame, MAGIC, 4) || !h->length || h->length > WIRE_BODY_MAX || !h->seq ||
	    h->seq > WIRE_SEQ_MAX)
		return -EBADMSG;
	return 0;
}

const unsigned char *wire_mac(const unsigned char *frame)
{
	return frame + SIGNED_HEADER;
}

static int sign_frame(const unsigned char *frame, const unsigned char sign[WIRE_KEY],
		      const unsigned char *request, unsigned char mac[WIRE_KEY])
{
	static const char asks[] = "mgpu request\n", answers[] = "mgpu answer\n";
	gnutls_hmac_hd_t hmac;
	uint32_t length;
	int ret;

	memcpy(&length, frame + 4, sizeof(length));
	if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, sign, WIRE_KEY))
		return -EIO;
	if (request) {
		ret = gnutls_hmac(hmac, answers, sizeof(answers) - 1) |
		      gnutls_hmac(hmac, request, WIRE_KEY);
	} else {
		ret = gnutls_hmac(hmac, asks, sizeof(asks) - 1);
	}
	ret |= gnutls_hmac(hmac, frame, SIGNED_HEADER);
	ret |= gnutls_hmac(hmac, frame + WIRE_HEADER, be32toh(length));
	gnutls_hmac_deinit(hmac, mac);
	return ret ? -EIO : 0;
}

bool wire_signed(const unsigned char *frame, const unsigned char sign[WIRE_KEY],
		 const unsigned char *request)
{
	unsigned char mac[WIRE_KEY];

	return !sign_frame(frame, sign, request, mac) &&
	       !gnutls_memcmp(mac, wire_mac(frame), WIRE_KEY);
}

/* ---- writing ---- */

static void put(struct wire_text *t, const char *bytes, size_t length)
{
	if (t->failed || length > WIRE_BODY_MAX - t->length) {
		t->failed = true;
		return;
	}
	memcpy(t->frame + WIRE_HEADER + t->length, bytes, length);
	t->length += length;
}

void wire_begin(struct wire_text *t, const char *verb)
{
	t->length = 0;
	t->failed = false;
	put(t, verb, strlen(verb));
	put(t, "\n", 1);
}

/* Whether a byte of a value stands for itself. */
static bool is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("._~:/,+@ -", c));
}

void wire_add(struct wire_text *t, const char *name, const char *value)
{
	char code[4];

	put(t, name, strlen(name));
	put(t, "=", 1);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (is_plain(c)) {
			put(t, value, 1);
			continue;
		}
		snprintf(code, sizeof(code), "%%%02x", c);
		put(t, code, 3);
		t->failed |= c < ' ' || c == 0x7f;
	}
	put(t, "\n", 1);
}

void wire_add_number(struct wire_text *t, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	wire_add(t, name, text);
}

size_t wire_end(struct wire_text *t, const unsigned char sign[WIRE_KEY], uint64_t seq,
		const unsigned char *request)
{
	uint32_t length = htobe32((uint32_t)t->length);
	uint64_t be_seq = htobe64(seq);

	if (t->failed)
		return 0;
	memcpy(t->frame, MAGIC, 4);
	memcpy(t->frame + 4, &length, sizeof(length));
	memcpy(t->frame + 8, &be_seq, sizeof(be_seq));
	if (sign_frame(t->frame, sign, request, t->frame + SIGNED_HEADER))
		return 0;
	return WIRE_HEADER + t->length;
}

/* ---- reading ---- */

/* Copy a word of [a-z][a-z0-9_]* up to @end. Return the byte behind it, NULL on an error. */
static const char *read_name(const char *at, const char *end, char stop, char *name)
{
	size_t n = 0;

	for (; at < end && *at != stop; at++) {
		bool letter = *at >= 'a' && *at <= 'z';

		if (!letter && !(n && ((*at >= '0' && *at <= '9') || *at == '_')))
			return NULL;
		if (n == WIRE_NAME_MAX - 1)
			return NULL;
		name[n++] = *at;
	}
	name[n] = '\0';
	return n && at < end ? at + 1 : NULL;
}

/* Decode a value up to its newline. Return the byte behind that, NULL on an error. */
static const char *read_value(const char *at, const char *end, char **out)
{
	for (; at < end && *at != '\n'; at++) {
		int c = (unsigned char)*at;

		if (c == '%') {
			c = end - at > 2 ? hex_byte(at + 1) : -1;
			at += 2;
			if (c < ' ' || c == 0x7f)
				return NULL;
		} else if (!is_plain((unsigned char)c)) {
			return NULL;
		}
		*(*out)++ = (char)c;
	}
	*(*out)++ = '\0';
	return at < end ? at + 1 : NULL;
}

static bool is_utf8(const char *text)
{
	size_t length = 1;

	for (; *text && length; text += length)
		length = utf8_len((const unsigned char *)text);
	return length;
}

int wire_parse(const unsigned char *body, size_t length, struct wire_message *m)
{
	const char *at = (const char *)body, *end = at + length;
	char *out = m->text;

	m->nr = 0;
	if (length > WIRE_BODY_MAX)
		return -EBADMSG;
	at = read_name(at, end, '\n', m->verb);
	while (at && at < end) {
		char name[WIRE_NAME_MAX];

		at = read_name(at, end, '=', name);
		if (!at || m->nr == WIRE_FIELDS || wire_get(m, name))
			return -EBADMSG;
		/* A name and its '=' are as long as a name and its NUL. */
		m->fields[m->nr].name = strcpy(out, name);
		out += strlen(name) + 1;
		m->fields[m->nr].value = out;
		at = read_value(at, end, &out);
		if (!at || !is_utf8(m->fields[m->nr].value))
			return -EBADMSG;
		m->nr++;
	}
	return at ? 0 : -EBADMSG;
}

const char *wire_get(const struct wire_message *m, const char *name)
{
	for (unsigned int i = 0; i < m->nr; i++)
		if (!strcmp(m->fields[i].name, name))
			return m->fields[i].value;
	return NULL;
}

int wire_decimal(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t n = 0;

	if (!*text || (*text == '0' && text[1]))
		return -EINVAL;
	for (; *text; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (*text < '0' || *text > '9' || n > max / 10 || n * 10 > max - digit ||
		    digit > max)
			return -EINVAL;
		n = n * 10 + digit;
	}
	*value = n;
	return 0;
}

int wire_number(const struct wire_message *m, const char *name, uint64_t max, uint64_t *value)
{
	const char *text = wire_get(m, name);

	return text ? wire_decimal(text, max, value) : 0;
}
