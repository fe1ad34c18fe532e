// SPDX-License-Identifier: GPL-2.0-only
/* Names of VMs and of vGPUs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm_name.h"

/* Bytes of a command line that are read: VMMs name the VM among its first words. */
#define CMDLINE_MAX	16384

#define ESCAPE_LEN	11	/* of an escape, bytes, with the end */
#define NO_UTF8		0xdc00u	/* plus a byte: a code that no text has */

/* ---- cleaning ---- */

/* Decode a character of UTF-8; return its length, 0 if it is none. */
static size_t decode(const unsigned char *s, size_t len, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 :
		   s[0] >> 3 == 30 ? 4 : 0;
	size_t i;

	if (!n || n > len)
		return 0;
	*c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		*c = *c << 6 | (s[i] & 0x3f);
	}
	return *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) ? 0 : n;
}

/*
 * Characters that show nothing, or change the direction of text: those that Unicode may ignore
 * (Default_Ignorable_Code_Point), ends of lines, annotations, and no characters.
 */
static const struct range {
	uint32_t from, to;
} hidden[] = {
	{ 0, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x61c, 0x61c },
	{ 0x115f, 0x1160 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xfdd0, 0xfdef },
	{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb },
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool is_hidden(uint32_t c)
{
	size_t i = 0;

	while (i < sizeof(hidden) / sizeof(*hidden) && hidden[i].to < c)
		i++;
	return (i < sizeof(hidden) / sizeof(*hidden) && hidden[i].from <= c) ||
		(c & 0xfffe) == 0xfffe;
}

/* Write an escape of printable ASCII, as in C; return its length. */
static size_t escape(uint32_t c, char text[ESCAPE_LEN])
{
	return (size_t)snprintf(text, ESCAPE_LEN, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

bool text_clean(const char *text, size_t len, char *clean, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t used = 0, n, out;

	for (; len; s += n, len -= n, used += out) {
		char escaped[ESCAPE_LEN];
		const void *from = s;
		uint32_t c;

		out = n = decode(s, len, &c);
		if (!n || is_hidden(c)) {
			out = escape(n ? c : NO_UTF8 + *s, escaped);
			from = escaped;
			n = n ? n : 1;
		}
		if (used + out >= size)
			break;
		memcpy(clean + used, from, out);
	}
	clean[used] = '\0';
	return used;
}

bool vm_name_clean(const char *text, size_t len, char name[VM_NAME_LEN])
{
	return text_clean(text, len, name, VM_NAME_LEN);
}

/* ---- command line ---- */

/*
 * The value of a key in QEMU's options: "NAME,key=value,guest=NAME". A first word without
 * '=' is the value of guest; two commas are one in a value.
 */
static bool guest_of_options(const char *options, char name[VM_NAME_LEN])
{
	static const char key[] = "guest=";
	const char *at = options;
	bool found = false;

	while (*at) {
		bool first = at == options && strcspn(at, "=") >= strcspn(at, ",");
		bool wanted = first || !strncmp(at, key, strlen(key));
		char value[4 * VM_NAME_LEN];
		size_t n = 0;

		if (wanted && !first)
			at += strlen(key);
		for (; *at; at++) {
			if (at[0] == ',' && at[1] == ',')
				at++;
			else if (at[0] == ',')
				break;
			if (n < sizeof(value))
				value[n++] = *at;
		}
		if (wanted)
			found = vm_name_clean(value, n, name);
		at += *at == ',';
	}
	return found;
}

/* The word after @word, NULL at the end: one that is cut off does not count. */
static const char *next_word(const char *word, const char *end)
{
	const char *zero = memchr(word, '\0', (size_t)(end - word));

	return zero && zero + 1 < end && memchr(zero + 1, '\0', (size_t)(end - zero - 1)) ?
		zero + 1 : NULL;
}

bool vm_name_of_cmdline(const char *cmdline, size_t len, char name[VM_NAME_LEN])
{
	const char *end = cmdline + len, *word = cmdline;
	bool found = false, named = false;

	if (!memchr(cmdline, '\0', len))
		return false;
	for (; word; word = next_word(word, end)) {
		if (named)
			found |= guest_of_options(word, name);
		named = !named && (!strcmp(word, "-name") || !strcmp(word, "--name"));
	}
	return found;
}

/* ---- control group ---- */

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool vm_name_of_cgroup(const char *path, char name[VM_NAME_LEN])
{
	static const char prefix[] = "/machine-", suffix[] = ".scope";
	const char *at = strstr(path, prefix);
	const char *end = at ? strstr(at, suffix) : NULL;
	char text[4 * VM_NAME_LEN];
	size_t n = 0, skip;

	if (!end || memchr(at + 1, '/', (size_t)(end - at - 1)))
		return false;
	for (at += strlen(prefix); at < end && n + 1 < sizeof(text); n++) {
		if (at[0] == '\\' && at[1] == 'x' && hex(at[2]) >= 0 && hex(at[3]) >= 0) {
			text[n] = (char)(hex(at[2]) << 4 | hex(at[3]));
			at += 4;
		} else {
			text[n] = *at++;
		}
	}
	text[n] = '\0';
	skip = strncmp(text, "qemu-", 5) ? 0 : 5 + strspn(text + 5, "0123456789");
	skip = skip > 5 && text[skip] == '-' ? skip + 1 : 0;
	return vm_name_clean(text + skip, n - skip, name);
}

/* ---- files ---- */

/* Read a file's beginning, with '\0' behind it; return its length, 0 on error. */
static size_t read_begin(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t len = 0;
	ssize_t n = 0;

	if (fd >= 0) {
		while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
			len += (size_t)n;
		close(fd);
	}
	if (n < 0)
		len = 0;
	text[len] = '\0';
	return len;
}

bool vm_name_of_process(const char *root, uint32_t tgid, char name[VM_NAME_LEN])
{
	char text[CMDLINE_MAX], path[PATH_MAX];
	size_t len;

	*name = '\0';
	snprintf(path, sizeof(path), "%s/proc/%u/cmdline", root, tgid);
	len = read_begin(path, text, sizeof(text));
	if (vm_name_of_cmdline(text, len, name))
		return true;
	snprintf(path, sizeof(path), "%s/proc/%u/cgroup", root, tgid);
	read_begin(path, text, sizeof(text));
	return vm_name_of_cgroup(text, name);
}

/* False if a UUID is none: it names a file. */
static bool name_path(const char *root, const char *uuid, char path[PATH_MAX])
{
	if (!*uuid || uuid[strspn(uuid, "0123456789abcdefABCDEF-")])
		return false;
	return (size_t)snprintf(path, PATH_MAX, "%s" VGPU_NAMES "/%s", root, uuid) < PATH_MAX;
}

bool vgpu_name_read(const char *root, const char *uuid, char name[VM_NAME_LEN])
{
	char path[PATH_MAX], text[4 * VM_NAME_LEN];

	*name = '\0';
	if (!name_path(root, uuid, path) || !read_begin(path, text, sizeof(text)))
		return false;
	return vm_name_clean(text, strcspn(text, "\n"), name);
}

static int make_folders(const char *root)
{
	char path[PATH_MAX];
	char *slash;

	if ((size_t)snprintf(path, sizeof(path), "%s" VGPU_NAMES, root) >= sizeof(path))
		return -ENAMETOOLONG;
	slash = strrchr(path, '/');
	*slash = '\0';
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	*slash = '/';
	return mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
}

int vgpu_name_write(const char *root, const char *uuid, const char *name)
{
	char path[PATH_MAX];
	FILE *file;
	int ret;

	if (!name_path(root, uuid, path))
		return -EINVAL;
	if (!name || !*name)
		return unlink(path) && errno != ENOENT ? -errno : 0;
	ret = make_folders(root);
	if (ret)
		return ret;
	unlink(path);	/* what is there may be a link */
	file = fopen(path, "wxe");
	if (!file)
		return -errno;
	ret = fprintf(file, "%s\n", name) < 0 ? -EIO : 0;
	if (fclose(file) && !ret)
		ret = -errno;
	return ret;
}
