# SPDX-License-Identifier: GPL-2.0-only
#
# The library of OpenCL that tests play, in $(remote-gen), for the Makefiles that include this with
# $(remote-tests) as this folder and $(api) as that of the descriptions.

$(remote-gen)/opencl_played.c: $(api)/opencl.yaml $(api)/describe.py $(remote-tests)/play
	@mkdir -p $(@D)
	python3 $(remote-tests)/play $< >$@.tmp
	@mv $@.tmp $@
