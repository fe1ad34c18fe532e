// SPDX-License-Identifier: GPL-2.0-only
/* Embeds the description of the API, which the assembler finds as it finds those of page.c. */
#include "api_private.h"

__asm__(".section .rodata\n"
	"openapi:\n"
	".incbin \"openapi.yaml\"\n"
	"openapi_end:\n"
	".byte 0\n"
	".previous\n");
extern const char openapi[], openapi_end[];

void get_openapi(struct context *c)
{
	answer_text(c, "application/yaml", openapi, (size_t)(openapi_end - openapi));
}
