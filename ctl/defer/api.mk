# SPDX-License-Identifier: GPL-2.0-only
#
# The table of API calls, $(OUT)/api_table.c, for the Makefiles that include this with $(defer) as this folder.

$(OUT)/api_table.c: $(defer)/api/generate $(wildcard $(defer)/api/*.yaml)
	@mkdir -p $(@D)
	python3 $^ >$@.tmp
	@mv $@.tmp $@
