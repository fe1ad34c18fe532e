# SPDX-License-Identifier: GPL-2.0-only
#
# Sources, flags and libraries of the unit tests. A test that needs nothing but its own
# test_NAME.c has no entry. All paths are relative to this folder.
#
# To add a test, write test_NAME.c (tap.h says how), and here, as far as needed:
#
#   test_NAME-srcs	further sources, such as ../../kmod/sched/throttle.c
#   test_NAME-cflags	further compiler flags
#   test_NAME-pkgs	libraries that pkg-config knows: their flags for compiler and linker
#   test_NAME-libs	further linker flags
#   test_NAME-deps	files that must exist before the test is compiled

# ---- shared by several tests

# The allocators, and the preemption policies.
alloc := $(wildcard ../../ctl/alloc/*.c)
preempt := $(wildcard ../../ctl/preempt/*.c)

# libmgpu has an mgpu.h, as has kmod/: only quoted includes may find it.
lib-cflags := -iquote ../../ctl/lib
mgpud-cflags := -I../../ctl/mgpud -I../../ctl/alloc -I../../ctl/preempt -I../../ctl/learn \
	$(lib-cflags)

# Lists and trees of the run queue are the kernel's own, from the source of a test
# kernel: machine-tools.
TOP := ../..
include ../../tools/sim/machine.mk

$(machine-tools)/lib/rbtree.c:
	@echo 'tests/unit: no $@; run: make kernel' >&2; exit 1

# ---- kmod/

test_bucket-srcs := ../../kmod/sched/bucket.c

test_cmd_decode-srcs := ../../kmod/gpu/cmd_decode.c

test_compute-srcs := ../../kmod/compute/compute.c
test_compute-cflags := -I../../include

test_hangs-srcs := ../../kmod/sched/hangs.c
test_hangs-cflags := -I../../include

test_model-srcs := ../../kmod/soft/model.c

test_runq-deps := $(machine-deps)
test_runq-srcs := $(addprefix ../../kmod/sched/,runq.c bucket.c policy_best_effort.c \
	policy_fair.c policy_fixed.c) $(machine-deps)
# Callbacks need not use all of their arguments.
test_runq-cflags := -isystem $(machine-tools)/include -I../../include \
	-Wno-unused-parameter

test_slice-srcs := ../../kmod/virgl/slice.c

test_throttle-srcs := ../../kmod/sched/throttle.c

test_virgl-srcs := $(addprefix ../../kmod/virgl/,virgl.c virgl_format.c virgl_caps.c)

test_vring-srcs := ../../kmod/vfio/vring.c

# ---- ctl/lib

test_notify-srcs := ../../ctl/lib/notify.c
test_notify-cflags := $(lib-cflags)

test_files-srcs := $(addprefix ../../ctl/lib/,files.c complain.c)
test_files-cflags := $(lib-cflags)

# ---- ctl/alloc, ctl/preempt

test_estimate-srcs := $(alloc)
test_estimate-cflags := -I../../ctl/alloc -DDATA='"$(abspath data)"'

test_exact-srcs := ipopt_fds.c $(alloc)
test_exact-cflags := -O2 -I../../ctl/alloc
test_exact-pkgs := ipopt

test_fea-srcs := $(alloc)
test_fea-cflags := -I../../ctl/alloc

test_rest-srcs := ../../ctl/alloc/rest.c
test_rest-cflags := -I../../ctl/alloc

test_expect-srcs := $(alloc)
test_expect-cflags := -I../../ctl/alloc

test_sla-srcs := $(alloc)
test_sla-cflags := -I../../ctl/alloc

test_preempt-srcs := $(preempt)
test_preempt-cflags := -I../../ctl/preempt

test_preempt_learn-srcs := ../../ctl/mgpud/config/learned.c $(preempt)
test_preempt_learn-cflags := -I../../ctl/mgpud -I../../ctl/preempt
test_preempt_learn-pkgs := json-c

# ---- ctl/learn

learn := ../../ctl/learn
learn-cflags := -I$(learn) $(lib-cflags)
learn-file := $(learn)/file.c ../../ctl/lib/checked.c
learn-models := $(addprefix $(learn)/,controls.c feature.c forest.c lines.c model.c network.c \
	trees.c words.c) $(learn-file)
learn-learner := $(addprefix $(learn)/,drift.c due.c learner.c) $(learn-models)
learn-network := $(addprefix $(learn)/,lines.c network.c network_train.c words.c)

test_learn_file-srcs := $(learn-file)
test_learn_file-cflags := $(learn-cflags)

test_learn_gradient-srcs := $(learn-network)
test_learn_gradient-cflags := $(learn-cflags) -DLEARN_DOUBLE -O2

test_learn_network-srcs := $(learn-models) $(learn)/network_train.c
test_learn_network-cflags := $(learn-cflags) -O2
test_learn_network-libs := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

test_learn_learner-srcs := $(learn-learner) $(alloc)
test_learn_learner-cflags := $(learn-cflags) -I../../ctl/alloc
test_learn_learner-libs := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

test_learn_trees-srcs := $(addprefix $(learn)/,boost.c controls.c feature.c forest.c lines.c trees.c \
	trees_train.c)
test_learn_trees-cflags := $(learn-cflags)
test_learn_trees-libs := -lxgboost -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=XGBoosterFree

test_learn_pairs-srcs := $(addprefix $(learn)/,boost.c forest.c lines.c pairs.c pairs_csv.c \
	pairs_fit.c pairs_prior.c) ../../ctl/preempt/norm.c
test_learn_pairs-cflags := $(learn-cflags) -I../../ctl/preempt
test_learn_pairs-libs := -lxgboost -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

test_learn_history-srcs := $(addprefix $(learn)/,history.c examples.c) $(learn-learner) $(alloc)
test_learn_history-cflags := $(learn-cflags) -I../../ctl/alloc
test_learn_history-pkgs := json-c

# ---- ctl/metrics

# It is mgpu-exporter on another kernel, too.
test_metrics-srcs := metrics_kernel.c \
	$(filter-out %/bpf_why.c,$(wildcard ../../ctl/metrics/*.c ../../ctl/lib/*.c))
test_metrics-cflags := -include test_metrics.h $(lib-cflags) -I../../ctl/metrics \
	-DMGPU_VERSION='"test"'
test_metrics-pkgs := libnl-genl-3.0 json-c libmicrohttpd libseccomp libcap-ng
test_metrics-libs := -Wl,--wrap=genl_ctrl_resolve,--wrap=sendto,--wrap=recvmsg,--wrap=recvmmsg

test_metrics_privileges-srcs := ../../ctl/metrics/privileges.c ../../ctl/lib/complain.c
test_metrics_privileges-cflags := $(lib-cflags) -I../../ctl/metrics
test_metrics_privileges-pkgs := libseccomp libcap-ng

# ---- ctl/mgpud

mgpud-config := $(addprefix ../../ctl/mgpud/config/,config.c settings.c table.c) \
	../../ctl/lib/mgpud_settings.c

test_cpu_waits-srcs := ../../ctl/mgpud/frames/cpu_waits.c
test_cpu_waits-cflags := $(mgpud-cflags)

test_ctx_view-srcs := ../../ctl/mgpud/contexts/ctx_view.c ../../ctl/lib/fields.c $(preempt)
test_ctx_view-cflags := $(mgpud-cflags) -I../../bpf
test_ctx_view-pkgs := json-c

test_mgpud_config-srcs := $(mgpud-config) ../../ctl/mgpud/server/log.c $(alloc) $(preempt) \
	$(learn-models)
test_mgpud_config-cflags := $(mgpud-cflags) \
	-DEXAMPLE='"$(abspath ../../ctl/mgpud/mgpud.conf)"' \
	-DMANUAL='"$(abspath ../../Documentation/man/mgpud.conf.5)"'
test_mgpud_config-pkgs := json-c inih

test_mgpud_pairs-srcs := ../../ctl/mgpud/contexts/pair_speeds.c ../../ctl/mgpud/config/weights.c \
	$(addprefix $(learn)/,forest.c lines.c pairs.c pairs_prior.c) $(learn-file) \
	../../ctl/preempt/norm.c
test_mgpud_pairs-cflags := $(mgpud-cflags)

# mgpud without what reaches the kernel, which the test plays.
test_mgpud_daemon-srcs := ../../ctl/mgpud/daemon.c ../../ctl/mgpud/keep.c \
	$(wildcard ../../ctl/mgpud/config/*.c ../../ctl/mgpud/server/*.c) \
	$(addprefix ../../ctl/mgpud/frames/,model.c sla_watch.c) \
	../../ctl/mgpud/contexts/pair_speeds.c $(addprefix $(learn)/,pairs.c pairs_prior.c) \
	$(filter-out %/model.c,$(learn-learner)) \
	../../ctl/mgpud/contexts/preempt_state.c \
	../../ctl/lib/mgpud_settings.c ../../ctl/lib/fields.c ../../ctl/lib/notify.c \
	../../kmod/compute/compute.c $(alloc) $(preempt)
test_mgpud_daemon-cflags := $(mgpud-cflags) -I../../include
test_mgpud_daemon-pkgs := json-c inih
test_mgpud_daemon-libs := -lpthread

test_mgpud_loop-deps := $(machine-deps)
test_mgpud_loop-srcs := $(alloc) $(machine-srcs)
test_mgpud_loop-cflags := -I../../tools/sim $(machine-cflags)

test_mgpud_overlay-srcs := ../../ctl/mgpud/config/overlay.c ../../ctl/mgpud/server/log.c \
	$(mgpud-config) $(alloc) $(preempt)
test_mgpud_overlay-cflags := $(mgpud-cflags)
test_mgpud_overlay-pkgs := json-c inih

test_mgpud_server-srcs := \
	$(addprefix ../../ctl/mgpud/server/,access.c budget.c server.c log.c) \
	$(mgpud-config) $(alloc) $(preempt)
test_mgpud_server-cflags := $(mgpud-cflags)
test_mgpud_server-pkgs := json-c inih

test_mgpud_service-srcs := ../../ctl/mgpud/server/watchdog.c \
	../../ctl/mgpud/frames/sla_watch.c $(alloc)
test_mgpud_service-cflags := $(mgpud-cflags)

test_mgpud_statefile-srcs := $(alloc) $(preempt) $(learn-learner) \
	$(addprefix ../../ctl/mgpud/config/,statefile.c learned.c settings.c)
test_mgpud_statefile-cflags := $(mgpud-cflags) -DDATA='"$(abspath data)"'
test_mgpud_statefile-pkgs := json-c
test_mgpud_statefile-libs := -lpthread

test_preempt_state-srcs := ../../ctl/mgpud/contexts/preempt_state.c \
	../../ctl/mgpud/server/log.c ../../ctl/lib/fields.c ../../ctl/lib/mgpud_settings.c \
	$(addprefix ../../ctl/mgpud/config/,settings.c table.c) \
	../../kmod/compute/compute.c $(alloc) $(preempt)
test_preempt_state-cflags := $(mgpud-cflags) -I../../include
test_preempt_state-pkgs := json-c

# ---- ctl/pool

# Tests are about these sources; the service has more, with more libraries.
pool-store := $(addprefix ../../ctl/pool/,store.c statements.c export.c rows.c schema.c sql.c \
	sqlite.c postgres.c model.c)
test_pool_store-srcs := pool_store_db.c $(pool-store)
test_pool_store-cflags := $(lib-cflags) -I../../ctl/pool \
	-DDATA='"$(abspath data/pool-store)"'
test_pool_store-pkgs := sqlite3 libpq
test_pool_store-libs := -Wl,--wrap=PQisBusy

test_pool_sqlite-srcs := pool_store_db.c $(pool-store)
test_pool_sqlite-cflags := $(lib-cflags) -I../../ctl/pool
test_pool_sqlite-pkgs := sqlite3 libpq

pool-host := $(addprefix ../../ctl/pool/,host.c host_attach.c host_gpus.c host_local.c host_mdev.c \
	host_open.c host_types.c model.c xml.c) \
	$(addprefix ../../ctl/lib/,complain.c fields.c mgpu.c msg.c pci.c pci_users.c sysfs.c)
pool-host-pkgs := libvirt libxml-2.0 gnutls libnl-genl-3.0

test_pool_xml-srcs := $(addprefix ../../ctl/pool/,xml.c)
test_pool_xml-cflags := -I../../ctl/pool
test_pool_xml-pkgs := libxml-2.0

test_pool_host-srcs := $(pool-host)
test_pool_host-cflags := $(lib-cflags) -I../../ctl/pool
test_pool_host-pkgs := $(pool-host-pkgs)
test_pool_host-libs := -Wl,--wrap=virNodeDeviceCreateXML,--wrap=virDomainDetachDeviceAlias \
	-Wl,--wrap=virDomainGetXMLDesc,--wrap=virDomainAttachDeviceFlags \
	-Wl,--wrap=virNodeDeviceDetachFlags,--wrap=virNodeDeviceReAttach

test_pool_check-srcs := ../../ctl/pool/check.c ../../ctl/lib/output.c $(pool-host)
test_pool_check-cflags := $(lib-cflags) -I../../ctl/pool
test_pool_check-pkgs := $(pool-host-pkgs) json-c

test_pool_jobs-srcs := ../../ctl/pool/jobs.c $(pool-host)
test_pool_jobs-cflags := $(lib-cflags) -I../../ctl/pool
test_pool_jobs-pkgs := $(pool-host-pkgs)
test_pool_jobs-libs := -Wl,--wrap=virConnectOpenAuth,--wrap=virConnectListAllDomains \
	-Wl,--wrap=virConnectListAllNodeDevices,--wrap=virDomainDefineXML \
	-Wl,--wrap=virConnectNodeDeviceEventRegisterAny

# ---- ctl/gpuctl, ctl/lib

test_gpuctl_bind-srcs := $(addprefix ../../ctl/gpuctl/,pci_gpu.c program.c) \
	$(addprefix ../../ctl/lib/,mgpu.c msg.c fields.c pci.c pci_users.c sysfs.c)
test_gpuctl_bind-cflags := $(lib-cflags) -I../../ctl/gpuctl
test_gpuctl_bind-pkgs := libnl-genl-3.0

# All of gpuctl, with a kernel and a clock of the test's.
test_gpuctl_ctx-srcs := played_source.c \
	$(filter-out %/trace_source.c %/bpf_why.c,$(wildcard ../../ctl/gpuctl/*.c ../../ctl/lib/*.c))
test_gpuctl_ctx-cflags := -include test_gpuctl_ctx.h $(lib-cflags) -I../../ctl/lib \
	-I../../ctl/gpuctl -I../../bpf -DMGPU_VERSION='"test"'
test_gpuctl_ctx-pkgs := libnl-genl-3.0 json-c smartcols ncursesw
test_gpuctl_ctx-libs := -Wl,--wrap=genl_ctrl_resolve,--wrap=genl_ctrl_resolve_grp \
	-Wl,--wrap=nl_socket_add_membership,--wrap=sendto,--wrap=recvmsg,--wrap=recvmmsg \
	-Wl,--wrap=clock_gettime,--wrap=ppoll,--wrap=json_object_array_get_idx -lpthread

test_gpuctl_lib-srcs := $(addprefix ../../ctl/lib/,msg.c fields.c hist.c mgpu.c)
test_gpuctl_lib-cflags := $(lib-cflags)
test_gpuctl_lib-pkgs := libnl-genl-3.0

test_gpuctl_mgpud-srcs := $(addprefix ../../ctl/lib/,mgpud_client.c msg.c fields.c)
test_gpuctl_mgpud-cflags := $(lib-cflags)
test_gpuctl_mgpud-pkgs := libnl-genl-3.0 json-c
test_gpuctl_mgpud-libs := -lpthread

test_gpuctl_out-srcs := ../../ctl/gpuctl/out.c $(addprefix ../../ctl/lib/,fields.c hist.c)
test_gpuctl_out-cflags := $(lib-cflags) -I../../ctl/gpuctl
test_gpuctl_out-pkgs := json-c smartcols

test_gpuctl_parse-srcs := ../../ctl/gpuctl/parse.c ../../ctl/lib/cmdline.c
test_gpuctl_parse-cflags := $(lib-cflags) -I../../ctl/gpuctl

test_gpuctl_top-srcs := $(addprefix ../../ctl/gpuctl/,top_model.c out.c) \
	$(addprefix ../../ctl/lib/,fields.c hist.c)
test_gpuctl_top-cflags := $(lib-cflags) -I../../ctl/lib -I../../ctl/gpuctl
test_gpuctl_top-pkgs := json-c smartcols

test_gpuctl_trace-srcs := $(addprefix ../../ctl/gpuctl/,trace_file.c trace_model.c trace_read.c \
	report_data.c report_html.c) $(addprefix ../../ctl/lib/,json_read.c vm_name.c)
test_gpuctl_trace-cflags := $(lib-cflags) -I../../ctl/gpuctl -I../../bpf -DTRACE_EVENTS_MAX=100000u
test_gpuctl_trace-pkgs := json-c

test_vm_name-srcs := ../../ctl/lib/vm_name.c
test_vm_name-cflags := $(lib-cflags)

test_renderd-srcs := $(addprefix ../../ctl/lib/,mgpu.c msg.c fields.c pci.c renderd.c) \
	../../ctl/renderd/backoff.c
test_renderd-cflags := $(lib-cflags) -I../../ctl/renderd
test_renderd-pkgs := libnl-genl-3.0

# ---- ctl/renderd

test_engine_clock-srcs := $(addprefix ../../ctl/lib/,drm_usage.c engine_clock.c)
test_engine_clock-cflags := -I../../ctl/lib

test_replay-srcs := $(addprefix ../../ctl/renderd/,record.c recording.c replay.c sandbox.c virgl.c) \
	$(addprefix ../../ctl/lib/,cmdline.c complain.c memory.c) ../kselftest/lib/stream.c
test_replay-cflags := $(lib-cflags) -I../../ctl/lib -I../../ctl/renderd -I../kselftest/lib \
	-DMGPU_VERSION='"test"' -DTOP='"$(abspath ../..)"'
test_replay-pkgs := json-c virglrenderer epoxy libseccomp libcap-ng

renderer-srcs := renderer.c ../../ctl/renderd/virgl.c \
	../../ctl/lib/complain.c ../kselftest/lib/stream.c
renderer-cflags := $(lib-cflags) -I../../ctl/renderd -I../kselftest/lib -DMGPU_VERSION='"test"'
renderer-pkgs := virglrenderer epoxy

test_slice_draws-srcs := $(renderer-srcs) ../../kmod/virgl/slice.c
test_slice_draws-cflags := $(renderer-cflags)
test_slice_draws-pkgs := $(renderer-pkgs)

test_samplers-srcs := $(renderer-srcs)
test_samplers-cflags := $(renderer-cflags)
test_samplers-pkgs := $(renderer-pkgs)

test_spare-srcs := ../../ctl/renderd/spare.c
test_spare-cflags := -I../../ctl/renderd

test_renderd_remote-srcs := $(addprefix ../../ctl/renderd/,processes.c remote.c sandbox.c) \
	$(addprefix ../../ctl/lib/,complain.c drm_usage.c engine_clock.c memory.c process_clock.c)
test_renderd_remote-cflags := $(lib-cflags) -I../../ctl/lib -I../../ctl/renderd
test_renderd_remote-pkgs := libseccomp libcap-ng
test_renderd_remote-libs := -Wl,--wrap=clock_gettime

test_turns-srcs := ../../ctl/lib/turns.c
test_turns-cflags := -I../../ctl/lib

test_processes-srcs := ../../ctl/renderd/processes.c \
	$(addprefix ../../ctl/lib/,drm_usage.c engine_clock.c process_clock.c)
test_processes-cflags := $(lib-cflags) -I../../ctl/lib -I../../ctl/renderd

# ---- ctl/defer

api := ../../ctl/api
include $(api)/api.mk

test_defer_graph-deps := $(OUT)/api_table.c
test_defer_graph-srcs := $(addprefix ../../ctl/defer/,api.c cfg.c image.c insn.c regs.c value.c) \
	$(OUT)/api_table.c
test_defer_graph-cflags := -I../../ctl/defer
test_defer_graph-pkgs := capstone libelf libdw

test_defer_work-deps := $(OUT)/api_table.c
test_defer_work-srcs := $(addprefix ../../ctl/defer/,api.c callers.c cfg.c classify.c eval.c image.c insn.c \
	live.c regs.c value.c) $(OUT)/api_table.c
test_defer_work-cflags := -I../../ctl/defer -DTESTS='"$(abspath ..)"'
test_defer_work-pkgs := capstone libelf libdw

# ---- ctl/place

place := ../../ctl/place
place-pure := $(addprefix $(place)/,place.c policies.c potential.c)

test_place-srcs := $(place-pure)
test_place-cflags := -I$(place) $(lib-cflags)
test_place-libs := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

test_place_replay-srcs := $(place-pure) $(addprefix $(place)/,place_trace.c replay.c train.c)
test_place_replay-cflags := -I$(place) $(lib-cflags)
test_place_replay-libs := -lpthread

test_place_trace-srcs := $(place-pure) $(addprefix $(place)/,place_trace.c state.c weights.c) \
	../../ctl/lib/checked.c
test_place_trace-cflags := -I$(place) $(lib-cflags)
test_place_trace-pkgs := json-c

# ---- ctl/pool: the core

pool := ../../ctl/pool
pool-core := $(addprefix $(pool)/,model.c table.c queue.c choice.c idle.c objects.c placing.c \
	pool.c reconcile.c) $(place-pure)
pool-core-cflags := -I$(pool) -I$(place) $(lib-cflags)

test_pool-srcs := $(pool-core)
test_pool-cflags := $(pool-core-cflags)

test_pool_queue-srcs := $(pool)/queue.c
test_pool_queue-cflags := -I$(pool)

test_pool_choice-srcs := $(addprefix $(pool)/,choice.c model.c table.c) $(place-pure)
test_pool_choice-cflags := $(pool-core-cflags)

test_pool_steady-srcs := $(pool)/steady.c
test_pool_steady-cflags := -I$(pool) $(lib-cflags)

test_pool_idle-srcs := $(pool)/idle.c
test_pool_idle-cflags := -I$(pool)

pool-api := $(addprefix $(pool)/,api.c api_body.c api_change.c api_json.c api_read.c auth.c crash.c \
	effects.c hosts_merge.c openapi.c store.c statements.c export.c rows.c schema.c sql.c sqlite.c \
	postgres.c) $(pool-core) $(addprefix ../../ctl/lib/,cmdline.c complain.c output.c)
test_pool_api-srcs := $(pool-api) $(addprefix $(pool)/,config.c limit.c)
test_pool_api-cflags := $(pool-core-cflags)
test_pool_api-pkgs := json-c gnutls sqlite3 libpq inih
test_pool_api-libs := -Wl,--wrap=store_commit,--wrap=store_export

test_pool_hosts-srcs := $(pool)/hosts.c $(pool-api)
test_pool_hosts-cflags := $(pool-core-cflags)
test_pool_hosts-pkgs := json-c gnutls sqlite3 libpq
test_pool_hosts-libs := -Wl,--wrap=store_begin

# All of mgpu-poold, with points to crash at, and a libvirt that outlives it.
test_poold-srcs := pool_persist.c $(filter-out %/main.c,$(wildcard $(pool)/*.c)) \
	../../ctl/agent/wire.c $(place-pure) $(filter-out %/bpf_why.c,$(wildcard ../../ctl/lib/*.c))
test_poold-cflags := $(pool-core-cflags) -I../../ctl/agent -DPOOL_CRASH_POINTS \
	-DMGPU_VERSION='"test"'
test_poold-pkgs := libvirt libxml-2.0 libmicrohttpd gnutls sqlite3 libpq inih json-c \
	libnl-genl-3.0
test_poold-libs := -lpthread -Wl,--wrap=virDomainDefineXML,--wrap=virConnectOpenAuth \
	-Wl,--wrap=clock_gettime,--wrap=time
# The compiler does not see what the assembler includes.
$(OUT)/test_poold.o.d/ctl_pool_page.o: $(wildcard $(pool)/page/*)

# libvirtd of test_pool_remote.py is preloaded with it.
all: $(OUT)/kept_libvirt.so
$(OUT)/kept_libvirt.so: kept_libvirt.c pool_persist.c Makefile tests.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -g -O1 $(WARN) -D_GNU_SOURCE -fPIC -shared -o $@ $<

# ---- ctl/remote

remote := ../../ctl/remote
remote-tests := ../remote
remote-gen := $(OUT)/gen
include $(remote)/gen.mk
include $(remote-tests)/play.mk

remote-played := $(addprefix $(remote-gen)/,opencl_gen.h opencl_front.c opencl_server.c \
	opencl_played.c)

# Both sides, and a library that the test plays.
test_remote_calls-deps := $(remote-played)
test_remote_calls-srcs := $(addprefix $(remote)/,analyse.c client.c group.c ledger.c marks.c \
	predict.c server.c shared.c socket.c vgpu.c opencl/front.c opencl/icd.c opencl/back.c \
	opencl/lengths.c) \
	../../ctl/defer/cache.c ../../ctl/lib/complain.c $(filter %.c,$(remote-played))
test_remote_calls-cflags := $(lib-cflags) -I../../ctl/lib -I$(remote) -I$(remote)/opencl \
	-I$(remote-gen) -I$(remote-tests) -I../../ctl/defer
test_remote_calls-pkgs := json-c capstone libdrm
test_remote_calls-libs := -lpthread -ldl -Wl,--wrap=nanosleep

test_remote_loops-srcs := $(addprefix $(remote)/,analyse.c group.c marks.c predict.c) \
	../../ctl/defer/cache.c
test_remote_loops-cflags := -I$(remote) -I../../ctl/defer
test_remote_loops-pkgs := json-c capstone

test_remote_redirect-srcs := $(remote)/cuda/redirect/functions.c
test_remote_redirect-cflags := -I$(remote)/cuda/redirect

test_remote_shares-srcs := $(remote)/shares.c ../../ctl/lib/turns.c
test_remote_shares-cflags := -I$(remote) -I../../ctl/lib

test_remote_ledger-srcs := $(remote)/ledger.c ../../ctl/lib/complain.c
test_remote_ledger-cflags := -I$(remote) -I../../ctl/lib

# ---- tools/

test_bench_stats-srcs := ../../tools/bench/common/stats.c
test_bench_stats-cflags := -I../../tools/bench/common

test_sim_machine-deps := $(machine-deps)
test_sim_machine-srcs := $(machine-srcs) ../../tools/sim/costs.c \
	../../tools/sim/tracefile.c
test_sim_machine-cflags := -I../../tools/sim $(machine-cflags)

test_sim_mgpud-srcs := $(filter-out %/preempt_main.c,$(wildcard ../../tools/sim/preempt_*.c)) \
	../../ctl/mgpud/contexts/ctx_view.c ../../ctl/lib/fields.c $(preempt)
test_sim_mgpud-cflags := $(mgpud-cflags) -I../../tools/sim -I../../bpf
# The test sees, and can suppress, what passes between the simulator and ctx_view.
test_sim_mgpud-libs := -Wl,--wrap=ctx_view_look,--wrap=ctx_view_snapshot \
	-Wl,--wrap=ctx_view_orders,--wrap=ctx_view_ran

# ---- ctl/agent

agent := ../../ctl/agent
# Both sides of the channel.
test_agent_devices-srcs := $(agent)/devices.c ../../ctl/lib/sysfs.c
test_agent_devices-cflags := -I$(agent) $(lib-cflags)

test_pool_agent-srcs := $(addprefix ../../ctl/pool/,agent.c agent_verbs.c choice.c crash.c idle.c \
	objects.c placing.c pool.c queue.c reconcile.c table.c) $(pool-store) $(place-pure) \
	$(agent)/link.c $(agent)/wire.c $(addprefix ../../ctl/lib/,complain.c vm_name.c)
test_pool_agent-cflags := -I../../ctl/pool -I$(place) -I$(agent) $(lib-cflags) -I../../ctl/lib
test_pool_agent-pkgs := gnutls sqlite3 libpq
test_pool_agent-libs := -lpthread -Wl,--wrap=poll
