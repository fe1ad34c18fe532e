# SPDX-License-Identifier: GPL-2.0-only
#
# The front end, libmgpu-opencl.so, and the server, mgpu-remoted. A generator
# writes most of their functions from the API's description.

remote-gen := $(OUT)/gen
remote-cflags := -Iremote -Iremote/opencl -I$(remote-gen) -fvisibility=hidden -pthread
remote-front-objs := $(addprefix $(OUT)/obj/pic/,client.o opencl/front.o opencl/icd.o \
	opencl/lengths.o opencl_front.o)
remote-back-objs := $(addprefix $(OUT)/obj/remote/,main.o server.o opencl/back.o \
	opencl/lengths.o opencl_server.o)

api := api
remote := remote
include remote/gen.mk

$(OUT)/obj/pic/%.o: remote/%.c Makefile remote/remote.mk | $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/pic/%.o: $(remote-gen)/%.c $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/remote/%.o: remote/%.c Makefile remote/remote.mk | $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/remote/%.o: $(remote-gen)/%.c $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/libmgpu-opencl.so: $(remote-front-objs)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-z,now \
		-o $@ $^

$(OUT)/mgpu-remoted: $(remote-back-objs) $(OUT)/libmgpu.a
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldl
