# SPDX-License-Identifier: GPL-2.0-only
#
# The generated parts of remoted APIs, in $(remote-gen), for the Makefiles that include this with
# $(remote) as this folder and $(api) as that of the descriptions.

remote-generator := $(remote)/generate $(api)/describe.py

# $(1): API; $(2): file; $(3): what the generator is told
define remote-generated
$(remote-gen)/$(2): $(api)/$(1).yaml $(remote-generator)
	@mkdir -p $$(@D)
	python3 $(remote)/generate $$< $(3) >$$@.tmp
	@mv $$@.tmp $$@
endef

$(foreach a,opencl cuda,$(eval $(call remote-generated,$(a),$(a)_gen.h,header)) \
	$(eval $(call remote-generated,$(a),$(a)_front.c,front)) \
	$(eval $(call remote-generated,$(a),$(a)_server.c,server)))
