/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files of the page (ctl/pool/page/), which are in the program.  http.c serves them; they
 * hold no secret, so that they need no token.
 */
#ifndef POOL_PAGE_H
#define POOL_PAGE_H

#include <stddef.h>

/*
 * Header Content-Security-Policy of each file.  The page has no inline scripts or styles, and
 * fetches from the service only.
 */
#define PAGE_POLICY	"default-src 'none'; script-src 'self'; style-src 'self'; " \
			"connect-src 'self'; img-src 'self' data:; base-uri 'none'; " \
			"form-action 'none'; frame-ancestors 'none'"

/**
 * struct page_file - a file of the page
 * @path: path of its URL, such as /page/page.css; "/" for index.html
 * @type: media type
 * @data: its first byte
 * @end: behind its last byte
 */
struct page_file {
	const char *path;
	const char *type;
	const char *data;
	const char *end;
};

/**
 * page_find() - find the file of a path
 * @path: decoded path of a URL
 *
 * Return: the file, or NULL if the page has no such file.
 */
const struct page_file *page_find(const char *path);

/* Return the file at @i, from 0; NULL behind the last. */
const struct page_file *page_at(size_t i);

#endif /* POOL_PAGE_H */
