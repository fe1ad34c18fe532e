# SPDX-License-Identifier: GPL-2.0-only
#
# The table of API calls, $(OUT)/api_table.c, for the Makefiles that include this with $(api) as
# this folder.

$(OUT)/api_table.c: $(api)/table $(api)/describe.py $(wildcard $(api)/*.yaml)
	@mkdir -p $(@D)
	python3 $(api)/table $(wildcard $(api)/*.yaml) >$@.tmp
	@mv $@.tmp $@
