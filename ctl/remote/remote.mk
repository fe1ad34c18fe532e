# SPDX-License-Identifier: GPL-2.0-only
#
# The front ends, libmgpu-opencl.so and cuda/libcuda.so.1, and the server, mgpu-remoted. A generator
# writes most of their functions from the API's description. cuda/libcudart.so.13 is a library for
# programs of CUDA's runtime API, which uses any libcuda.so.1, and cuda/libmgpu-redirect.so has
# programs use it that were linked with NVIDIA's statically.

remote-gen := $(OUT)/gen
remote-cflags := -Iremote -Iremote/opencl -Iremote/cuda -Iremote/cuda/runtime -I$(remote-gen) -Idefer -fvisibility=hidden -pthread \
	$(shell $(PKG_CONFIG) --cflags libdrm)
remote-client-objs := $(addprefix $(OUT)/obj/pic/,analyse.o client.o group.o marks.o predict.o shared.o \
	socket.o vgpu.o cache.o)
remote-opencl-objs := $(remote-client-objs) $(addprefix $(OUT)/obj/pic/,opencl/front.o \
	opencl/icd.o opencl/lengths.o opencl_front.o)
remote-cuda-objs := $(remote-client-objs) $(addprefix $(OUT)/obj/pic/,cuda/errors.o cuda/front.o \
	cuda/image.o cuda/launch.o cuda/memory.o cuda/ranges.o cuda_front.o)
remote-runtime-objs := $(addprefix $(OUT)/obj/pic/cuda/,errors.o image.o \
	$(addprefix runtime/,code.o device.o driver.o launch.o memory.o names.o outside.o streams.o))
remote-redirect-objs := $(addprefix $(OUT)/obj/pic/,analyse.o cuda/redirect/functions.o \
	cuda/redirect/redirect.o)
remote-back-objs := $(addprefix $(OUT)/obj/remote/,apps.o confine.o control.o group.o launch.o ledger.o \
	main.o server.o shares.o opencl/back.o opencl/lengths.o opencl_server.o cuda/back.o \
	cuda/image.o cuda/ranges.o cuda_server.o) \
	$(addprefix $(OUT)/obj/mgpud/server/,access.o budget.o server.o)
remote-headers := $(remote-gen)/opencl_gen.h $(remote-gen)/cuda_gen.h

api := api
remote := remote
include remote/gen.mk

$(OUT)/obj/pic/%.o: remote/%.c Makefile remote/remote.mk | $(remote-headers)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/pic/%.o: $(remote-gen)/%.c $(remote-headers)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/pic/%.o: defer/%.c Makefile remote/remote.mk
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(defer-cflags) $(remote-cflags) -fPIC $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/remote/%.o: remote/%.c Makefile remote/remote.mk | $(remote-headers)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

# mgpud's socket
$(OUT)/obj/remote/control.o: remote-cflags += -Imgpud -Ialloc -Ilearn

$(OUT)/obj/remote/%.o: $(remote-gen)/%.c $(remote-headers)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/cuda/libcuda.so.1: $(remote-cuda-objs)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-z,now \
		-Wl,-soname,$(@F) -o $@ $^ $(shell $(PKG_CONFIG) --libs json-c)

$(OUT)/cuda/libcudart.so.13: $(remote-runtime-objs) remote/cuda/runtime/exports.map
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-z,now \
		-Wl,-soname,$(@F) -Wl,--version-script,$(filter %.map,$^) -o $@ \
		$(filter %.o,$^) -ldl

$(OUT)/cuda/libmgpu-redirect.so: $(remote-redirect-objs)
	@mkdir -p $(@D)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-z,now \
		-o $@ $^ -ldl

$(OUT)/mgpu-cuda: remote/cuda/redirect/mgpu-cuda
	@mkdir -p $(@D)
	install $< $@

$(OUT)/libmgpu-opencl.so: $(remote-opencl-objs)
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,-z,now \
		-o $@ $^ $(shell $(PKG_CONFIG) --libs json-c)

$(OUT)/mgpu-remoted: $(remote-back-objs) $(OUT)/libmgpu.a
	$(CC) $(CTL_CFLAGS) $(remote-cflags) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ldl \
		$(shell $(PKG_CONFIG) --libs json-c libseccomp)
