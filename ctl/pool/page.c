// SPDX-License-Identifier: GPL-2.0-only
/* Embeds the files of the page. */
#include <string.h>

#include "page.h"

/* Include a file in the program. The assembler finds it by -I of the folder of this source. */
#define EMBED(name, file)						\
	__asm__(".section .rodata\n"					\
		"page_" #name ":\n"					\
		".incbin \"page/" file "\"\n"				\
		"page_" #name "_end:\n"					\
		".byte 0\n"						\
		".previous\n");						\
	extern const char page_##name[];				\
	extern const char page_##name##_end[]

#define HTML	"text/html; charset=utf-8"
#define CSS	"text/css; charset=utf-8"
#define SCRIPT	"text/javascript; charset=utf-8"

#define FILE_OF(path, type, name)	{ path, type, page_##name, page_##name##_end }

EMBED(index, "index.html");
EMBED(css, "page.css");
EMBED(page, "page.js");
EMBED(dom, "dom.js");
EMBED(table, "table.js");
EMBED(plot, "plot.js");
EMBED(service, "service.js");
EMBED(model, "model.js");
EMBED(views, "views.js");
EMBED(dialogs, "dialogs.js");

static const struct page_file files[] = {
	FILE_OF("/", HTML, index),
	FILE_OF("/page/page.css", CSS, css),
	FILE_OF("/page/page.js", SCRIPT, page),
	FILE_OF("/page/dom.js", SCRIPT, dom),
	FILE_OF("/page/table.js", SCRIPT, table),
	FILE_OF("/page/plot.js", SCRIPT, plot),
	FILE_OF("/page/service.js", SCRIPT, service),
	FILE_OF("/page/model.js", SCRIPT, model),
	FILE_OF("/page/views.js", SCRIPT, views),
	FILE_OF("/page/dialogs.js", SCRIPT, dialogs),
};

#define NR_FILES	(sizeof(files) / sizeof(files[0]))

const struct page_file *page_at(size_t i)
{
	return i < NR_FILES ? &files[i] : NULL;
}

const struct page_file *page_find(const char *path)
{
	for (size_t i = 0; i < NR_FILES; i++)
		if (!strcmp(files[i].path, path))
			return &files[i];
	return NULL;
}
