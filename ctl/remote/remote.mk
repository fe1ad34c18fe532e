# SPDX-License-Identifier: GPL-2.0-only
#
# The front end, libmgpu-opencl.so, and the server, mgpu-remoted. A generator
# writes most of their functions from the API's description.

remote-gen := $(OUT)/gen
remote-cflags := -Iremote -Iremote/opencl -I$(remote-gen) -Idefer -fvisibility=hidden -pthread
remote-front-objs := $(addprefix $(OUT)/obj/pic/,analyse.o client.o group.o marks.o shared.o \
	predict.o socket.o vgpu.o opencl/front.o opencl/icd.o \
	opencl/lengths.o opencl_front.o cache.o)
remote-back-objs := $(addprefix $(OUT)/obj/remote/,apps.o confine.o control.o group.o launch.o ledger.o \
	main.o server.o usage.o opencl/back.o opencl/lengths.o opencl_server.o) \
	$(addprefix $(OUT)/obj/mgpud/server/,access.o budget.o server.o)

api := api
remote := remote
include remote/gen.mk

$(OUT)/obj/pic/%.o: remote/%.c Makefile remote/remote.mk | $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/pic/%.o: $(remote-gen)/%.c $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/pic/%.o: defer/%.c Makefile remote/remote.mk
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(defer-cflags) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/remote/%.o: remote/%.c Makefile remote/remote.mk | $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

# mgpud's socket
$(OUT)/obj/remote/control.o: remote-cflags += -Imgpud -Ialloc

$(OUT)/obj/remote/%.o: $(remote-gen)/%.c $(remote-gen)/opencl_gen.h
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/libmgpu-opencl.so: $(remote-front-objs)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-z,now \
		-o $@ $^ $(shell $(PKG_CONFIG) --libs json-c)

$(OUT)/mgpu-remoted: $(remote-back-objs) $(OUT)/libmgpu.a
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldl \
		$(shell $(PKG_CONFIG) --libs json-c libseccomp)
