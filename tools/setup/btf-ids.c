// SPDX-License-Identifier: GPL-2.0-only
/*
 * Put the ids of BTF types into the lists of ids of a kernel module.
 *
 *   btf-ids -b BASE MODULE
 *
 * BASE is the kernel's BTF, or an ELF file with it. The module has its own BTF already. A
 * list of ids is in the section .BTF_ids, and the module's symbols name its entries
 * (include/linux/btf_ids.h):
 *
 *   __BTF_ID__KIND__NAME__NUMBER	the id of NAME; KIND is func, struct, union or typedef
 *   __BTF_ID__set__NAME		a set: the number of its ids, then the ids in order
 *   __BTF_ID__set8__NAME		a set whose ids have flags: the number, flags of the set
 *
 * It takes the place of the kernel's resolve_btfids, which headers of Debian 12's Linux 6.1
 * lack. Debian's package of the modules has this program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <gelf.h>

#define PREFIX	"__BTF_ID__"

struct module {
	const char *path;
	int fd;
	Elf *elf;
	struct btf *btf;
	Elf_Data *ids;		/* of .BTF_ids */
	off_t ids_at;		/* where its contents are in the file */
	size_t ids_index;
	Elf_Scn *symbols;
	size_t names;		/* the string table of symbols */
};

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("btf-ids: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static int open_module(struct module *m)
{
	size_t names, sections, seen = 1;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	m->fd = open(m->path, O_RDWR | O_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	elf_version(EV_CURRENT);
	m->elf = elf_begin(m->fd, ELF_C_READ, NULL);
	if (!m->elf || elf_kind(m->elf) != ELF_K_ELF || elf_getshdrstrndx(m->elf, &names) ||
	    elf_getshdrnum(m->elf, &sections))
		return -ENOEXEC;
	while ((scn = elf_nextscn(m->elf, scn))) {
		const char *name;

		seen++;
		if (!gelf_getshdr(scn, &sh))
			return -ENOEXEC;
		name = elf_strptr(m->elf, names, sh.sh_name);
		if (name && !strcmp(name, ".BTF_ids")) {
			m->ids = elf_getdata(scn, NULL);
			if (!m->ids || (m->ids->d_size && !m->ids->d_buf))
				return -ENOEXEC;
			m->ids_at = (off_t)sh.sh_offset;
			m->ids_index = elf_ndxscn(scn);
		} else if (sh.sh_type == SHT_SYMTAB) {
			m->symbols = scn;
			m->names = sh.sh_link;
		}
	}
	/* The end of a file that was cut has the headers of sections. */
	return seen > 1 && seen == sections ? 0 : -ENOEXEC;
}

static void close_module(struct module *m)
{
	btf__free(m->btf);
	elf_end(m->elf);
	if (m->fd >= 0)
		close(m->fd);
}

/* A list's entry at offset @at, with room for @words words; NULL if it is outside. */
static uint32_t *entry(const struct module *m, uint64_t at, size_t words)
{
	if (at % sizeof(uint32_t) || at > m->ids->d_size ||
	    words > (m->ids->d_size - at) / sizeof(uint32_t))
		return NULL;
	return (uint32_t *)((char *)m->ids->d_buf + at);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Count and sort the ids of a set of @size bytes, which begins with @head words. */
static int finish_set(const struct module *m, const GElf_Sym *sym, size_t head, size_t each)
{
	size_t words = sym->st_size / sizeof(uint32_t);
	uint32_t *set = entry(m, sym->st_value, words);

	if (!set || words < head || (words - head) % each)
		return -EINVAL;
	set[0] = (uint32_t)((words - head) / each);
	qsort(set + head, set[0], each * sizeof(uint32_t), compare_ids);
	return 0;
}

/* Put the id of the type that @text, "KIND__NAME__NUMBER", names into @sym's entry. */
static int put_id(const struct module *m, const GElf_Sym *sym, const char *text)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} kinds[] = {
		{ "func__", BTF_KIND_FUNC }, { "struct__", BTF_KIND_STRUCT },
		{ "union__", BTF_KIND_UNION }, { "typedef__", BTF_KIND_TYPEDEF },
	};
	uint32_t *at = entry(m, sym->st_value, 1);
	char name[256];
	size_t i, len;
	int id;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(text, kinds[i].name, strlen(kinds[i].name)))
			break;
	if (!at || i == sizeof(kinds) / sizeof(kinds[0]))
		return -EINVAL;
	text += strlen(kinds[i].name);

	/* The number only keeps symbols apart. */
	len = strlen(text);
	while (len && text[len - 1] >= '0' && text[len - 1] <= '9')
		len--;
	if (len < 3 || len - 2 >= sizeof(name) || text[len - 1] != '_' || text[len - 2] != '_')
		return -EINVAL;
	memcpy(name, text, len - 2);
	name[len - 2] = '\0';

	id = btf__find_by_name_kind(m->btf, name, kinds[i].kind);
	if (id < 0) {
		complain("%s: no %.*s '%s' in the module's BTF or the kernel's", m->path,
			 (int)strlen(kinds[i].name) - 2, kinds[i].name, name);
		return id;
	}
	*at = (uint32_t)id;
	return 0;
}

/* Sets are sorted when all ids are known: with @sets only them, else only ids. */
static int visit(const struct module *m, bool sets)
{
	Elf_Data *data = elf_getdata(m->symbols, NULL);
	GElf_Sym sym;
	int i, ret = 0;

	if (!data)
		return -ENOEXEC;
	for (i = 0; !ret && gelf_getsym(data, i, &sym); i++) {
		const char *name = elf_strptr(m->elf, m->names, sym.st_name);

		if (!name || strncmp(name, PREFIX, strlen(PREFIX)) ||
		    sym.st_shndx != m->ids_index)
			continue;
		name += strlen(PREFIX);
		if (!strncmp(name, "set8__", strlen("set8__")))
			ret = sets ? finish_set(m, &sym, 2, 2) : 0;
		else if (!strncmp(name, "set__", strlen("set__")))
			ret = sets ? finish_set(m, &sym, 1, 1) : 0;
		else
			ret = sets ? 0 : put_id(m, &sym, name);
		if (ret == -EINVAL)
			complain("%s: a list of ids that is not understood: %s", m->path, name);
	}
	return ret;
}

static int resolve(struct module *m, const char *base_path)
{
	struct btf *base = btf__parse(base_path, NULL);
	ssize_t n;
	int ret;

	if (!base) {
		complain("%s has no BTF", base_path);
		return -ENOENT;
	}
	ret = open_module(m);
	if (ret) {
		complain("cannot read %s: %s", m->path, strerror(-ret));
		goto out;
	}
	if (!m->ids)
		goto out;	/* without lists */
	m->btf = btf__parse_split(m->path, base);
	if (!m->btf || !m->symbols) {
		ret = m->btf ? -ENOEXEC : -errno;
		complain("%s has no BTF or no symbols: run pahole first", m->path);
		goto out;
	}

	ret = visit(m, false);
	if (!ret)
		ret = visit(m, true);
	if (ret)
		goto out;
	n = pwrite(m->fd, m->ids->d_buf, m->ids->d_size, m->ids_at);
	if (n != (ssize_t)m->ids->d_size) {
		ret = n < 0 ? -errno : -EIO;
		complain("cannot write %s: %s", m->path, strerror(-ret));
	}
out:
	close_module(m);
	btf__free(base);
	return ret;
}

int main(int argc, char **argv)
{
	struct module m = { .fd = -1 };

	if (argc != 4 || strcmp(argv[1], "-b")) {
		fputs("usage: btf-ids -b BASE MODULE\n", stderr);
		return 2;
	}
	m.path = argv[3];
	libbpf_set_print(NULL);
	return resolve(&m, argv[2]) ? EXIT_FAILURE : EXIT_SUCCESS;
}
