/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Frames between mgpu-agent and mgpu-poold: both sides use this file.  Pure but for GnuTLS's
 * HMAC and HKDF: no input, no output, no clock.
 *
 * A frame is a header of WIRE_HEADER bytes and a body of up to WIRE_BODY_MAX bytes:
 *
 *	offset  bytes
 *	0	4	"mga1"
 *	4	4	length of the body, big-endian
 *	8	8	sequence, big-endian, 1 to WIRE_SEQ_MAX
 *	16	32	HMAC-SHA256
 *
 * The HMAC of a request covers "mgpu request\n", bytes 0 to 15, and the body; that of an answer
 * "mgpu answer\n", the HMAC of its request, bytes 0 to 15, and the body.  An answer has the
 * sequence of its request.  So no frame passes for one of the other direction, of another VM, or
 * as the answer to another request.
 *
 * A body is lines: a verb, or "ok", or "error"; then NAME=VALUE, each name once.  A name is
 * [a-z][a-z0-9_]*; in a value every byte outside of [A-Za-z0-9._~:/,+@ -] is %XX, and it is
 * UTF-8 without control characters.
 */
#ifndef AGENT_WIRE_H
#define AGENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_HEADER	48
#define WIRE_BODY_MAX	8192
#define WIRE_FRAME_MAX	(WIRE_HEADER + WIRE_BODY_MAX)
#define WIRE_FIELDS	32
#define WIRE_NAME_MAX	16	/* of a verb or field, and its NUL */
#define WIRE_SEQ_MAX	INT64_MAX
#define WIRE_KEY	32	/* bytes of a key, and of an HMAC */
#define WIRE_PORT	9653	/* of vsock and TCP */

/*
 * Both sides' settings of GnuTLS: TLS 1.3, a pre-shared key with ECDHE, nothing older.  Without
 * certificates no signature is made, but GnuTLS wants an algorithm.
 */
#define WIRE_PRIORITY								\
	"NONE:+VERS-TLS1.3:+ECDHE-PSK:+AES-128-GCM:+CHACHA20-POLY1305:+AEAD:"	\
	"+GROUP-X25519:+GROUP-SECP256R1:+SIGN-ECDSA-SECP256R1-SHA256:"		\
	"%DISABLE_TLS13_COMPAT_MODE"

/**
 * struct wire_keys - what is derived from a VM's key (HKDF-SHA256)
 * @tls: pre-shared key of the handshake
 * @sign: key of the HMACs
 */
struct wire_keys {
	unsigned char tls[WIRE_KEY];
	unsigned char sign[WIRE_KEY];
};

/* Return 0 or -EIO (GnuTLS refused, as in FIPS mode with a key that is too short). */
int wire_keys(const unsigned char key[WIRE_KEY], struct wire_keys *keys);

/**
 * struct wire_header - a header that was checked for itself
 * @length: bytes of the body
 * @seq: sequence
 */
struct wire_header {
	uint32_t length;
	uint64_t seq;
};

/* Read a header of WIRE_HEADER bytes. Return 0 or -EBADMSG. */
int wire_header(const unsigned char *frame, struct wire_header *h);

/**
 * struct wire_text - a frame that is written
 * @frame: header, then body
 * @length: bytes of the body
 * @failed: a field did not fit, or had a byte that no value may have
 */
struct wire_text {
	unsigned char frame[WIRE_FRAME_MAX];
	size_t length;
	bool failed;
};

/* Begin a frame with its verb, "ok" or "error". */
void wire_begin(struct wire_text *t, const char *verb);
void wire_add(struct wire_text *t, const char *name, const char *value);
void wire_add_number(struct wire_text *t, const char *name, uint64_t value);
/**
 * wire_end() - write header and signature
 * @t: the frame
 * @sign: key
 * @seq: sequence
 * @request: HMAC of the request that the frame answers; NULL: the frame is a request
 *
 * Return: bytes of the frame; 0 if it failed.
 */
size_t wire_end(struct wire_text *t, const unsigned char sign[WIRE_KEY], uint64_t seq,
		const unsigned char *request);

/* Check the signature of a frame whose header wire_header() took. */
bool wire_signed(const unsigned char *frame, const unsigned char sign[WIRE_KEY],
		 const unsigned char *request);
/* Return the HMAC of a frame. */
const unsigned char *wire_mac(const unsigned char *frame);

/**
 * struct wire_message - a body that was read
 * @verb: its first line
 * @fields: its fields
 * @nr: number of fields
 * @text: decoded bytes that the fields point to
 */
struct wire_message {
	char verb[WIRE_NAME_MAX];
	struct {
		const char *name;
		const char *value;
	} fields[WIRE_FIELDS];
	unsigned int nr;
	char text[WIRE_BODY_MAX + 1];
};

/* Read a body. Return 0 or -EBADMSG. */
int wire_parse(const unsigned char *body, size_t length, struct wire_message *m);
/* Return a field's value; NULL for none. */
const char *wire_get(const struct wire_message *m, const char *name);
/* Read a field as a decimal number up to @max; @value stays for none. Return 0 or -EINVAL. */
int wire_number(const struct wire_message *m, const char *name, uint64_t max, uint64_t *value);
/* Read a decimal number from 0 to @max without sign, blank or leading zero: 0 or -EINVAL. */
int wire_decimal(const char *text, uint64_t max, uint64_t *value);

/**
 * wire_read_key() - read what a key file or fw_cfg has: "HEX", or "VM:HEX" with 64 digits
 * @text: the text; blanks and newlines at its end do not count
 * @vm: the VM's name, of 64 bytes; "" if there is none
 * @key: the key
 *
 * Return: 0 or -EINVAL.
 */
int wire_read_key(const char *text, char vm[64], unsigned char key[WIRE_KEY]);

#endif /* AGENT_WIRE_H */
