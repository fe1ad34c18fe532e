# SPDX-License-Identifier: GPL-2.0
#
# Front door. make help says what there is; everything built is in build/.

KERNEL	?= 6.1
BUILD	?= $(CURDIR)/build
DEPS	?= yes
JOBS	?= $(shell nproc)

override BUILD := $(abspath $(BUILD))
KERNELDIR := $(BUILD)/kernel/$(KERNEL)
KDIR	?= $(KERNELDIR)/kdir
# Modules for another kernel go where that kernel's release says.
KMOD	:= $(BUILD)/kmod/$(if $(filter file,$(origin KDIR)),$(KERNEL),$(shell \
	sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h))

export KERNEL BUILD

# Guests of the debug kernel have the kernel it was made from: a checker of
# their own would only slow them down.
GUEST_KERNEL := $(if $(filter debug,$(KERNEL)),6.1,$(KERNEL))

# UBSAN looks only at who asks for it; the compiler is that of the kernel.
KMOD_FLAGS := $(if $(filter debug,$(KERNEL)),UBSAN_SANITIZE=y CC=gcc-12)

# Modules for a test kernel have parameters with which tests have a GPU hang. Those for
# the kernel that a caller names do not.
KMOD_FLAGS += $(if $(filter file,$(origin KDIR)),MGPU_TEST=y)

# Use all processors also when make was called without -j.
ifeq ($(filter -j%,$(MAKEFLAGS)),)
SUBJOBS := -j$(JOBS)
endif
SUB = +$(MAKE) --no-print-directory $(SUBJOBS) BUILD=$(BUILD) KERNEL=$(KERNEL)

.DEFAULT_GOAL := all
.PHONY: help deps build-deps deb kernel kmod libbpf bpf ctl guest debian13 libvirt prometheus \
	postgresql sshd sim all \
	unit fuzz \
	fuzz-targets kselftest \
	demo bench-sched bench-isolation bench-unmap bench-alloc bench-control bench-preempt \
	bench-virtio bench-render bench-deferred bench-place bench-learn bench-scrape bench-operate \
	bench-pool demo-pool learn-weights htmldocs \
	check check-long check-static \
	check-unit check-fuzz check-kselftest check-e2e check-e2e-rest check-kernel check-kernels \
	check-debug check-packaging mutations coverage vm-shell clean distclean

help: ## say what can be made
	@echo 'make TARGET [KERNEL=6.1|6.12|bookworm-backports|backports|debug]'
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | \
		expand -t 20
	@echo 'Parameters:'
	@echo '  KERNEL=6.1        test kernel: 6.1, 6.12, bookworm-backports, backports (the newest of'
	@echo '                    trixie-backports), or debug (6.1 with checkers)'
	@echo '  KDIR=DIR          build the modules for another kernel (kmod only)'
	@echo '  GPU=virtio        a PCI virtio-gpu with OpenGL is shared, not mgpu_soft (demo, fuzz)'
	@echo '  GPU=host          processors draw with OpenGL, by mgpu-renderd (demo)'
	@echo '  DEPS=no           do not look for missing packages'

deps: $(BUILD)/deps.stamp ## install the packages that are missing (Debian 12)

# The packages for all goals are enough to build with.
build-deps: $(if $(wildcard $(BUILD)/deps.stamp),deps,$(BUILD)/build-deps.stamp)

$(BUILD)/%.stamp: tools/setup/packages tools/setup/deps
	@mkdir -p $(BUILD)
ifeq ($(DEPS),no)
	@echo '$*: not looked at (DEPS=$(DEPS))'
else
	@tools/setup/deps $(if $(filter build-deps,$*),--building)
	@touch $@
endif

# The headers of the test kernel are needed unless the caller brings others.
ifeq ($(origin KDIR),file)
kmod: deps kernel
endif

# A real host gets what it has the libraries for. Tests need all, and fetch a libbpf for it.
ifneq ($(filter-out kmod bpf ctl deb,$(or $(MAKECMDGOALS),all)),)
ctl: libbpf
endif

kernel: deps ## fetch the test kernel
	@tools/vm/kernel $(KERNEL)

kmod: build-deps ## build the kernel modules, with BTF
	@tools/setup/kmod-build $(KDIR) $(KMOD) $(SUBJOBS) $(KMOD_FLAGS)
ifeq ($(origin KDIR),file)
	@tools/setup/kmod-build --source tools/vm/tcg $(KDIR) \
		$(BUILD)/tcg/$(KERNEL) $(KMOD_FLAGS)
endif

libbpf: build-deps ## build a newer libbpf where the distribution's is too old
	@[ ! -x tools/setup/libbpf ] || tools/setup/libbpf

bpf: build-deps ## build the BPF programs
	$(SUB) -C bpf

ctl: bpf ## build mgpud, gpuctl and libmgpu
	$(SUB) -C ctl

deb: libbpf ## build Debian's packages, in build/deb; first: apt build-dep ./
	@JOBS=$(JOBS) tools/packaging/deb

guest: kernel ## build the guest workloads and the image that guests boot
	$(SUB) -C tools/guest KERNEL=$(GUEST_KERNEL)

debian13: guest ## fetch a Debian 13 that guests can boot
	@tools/vm/kernel 6.1
	@tools/guest/debian13
	$(SUB) -C tools/guest debian13

libvirt: deps ## fetch libvirt and mdevctl, for a test with them (LIBVIRT_SUITE=trixie: Debian 13's)
	@tools/setup/libvirt $(or $(LIBVIRT_SUITE),bookworm)

prometheus: deps ## fetch Prometheus, for a test of the metrics
	@tools/setup/prometheus

postgresql: deps ## fetch PostgreSQL, for tests of the pool's database
	@tools/setup/postgresql

sshd: deps ## fetch an SSH server, for tests of the pool's remote hosts
	@tools/setup/sshd

sim: ctl kernel ## build the simulator
	$(SUB) -C tools/sim

unit: kernel ## build the unit tests
	$(SUB) -C tests/unit

fuzz-targets: deps ## build the fuzz targets
	$(SUB) -C tests/fuzz

# SECONDS is a variable of bash's, too.
unexport SECONDS
fuzz: ## fuzz vGPUs in the debug kernel: SECONDS=60 [SEED=N] [REPLAY=FILE] [GPU=virtio]
	+@$(MAKE) --no-print-directory KERNEL=debug kernel kmod kselftest
	@KERNEL=debug tests/device/fuzz.sh --seconds $(or $(SECONDS),60) \
		$(if $(SEED),--seed $(SEED)) $(if $(REPLAY),--replay $(REPLAY)) \
		$(if $(GPU),--gpu $(GPU))

kselftest: ctl kernel ## build the kernel self-tests
	$(SUB) -C tests/kselftest

all: kmod bpf ctl guest sim ## build everything but the tests

demo: all ## show three VMs share a GPU, before and after control; GPU=virtio: with OpenGL
	@tools/demo/run

demo-pool: build-deps ## show a GPU pool at work on its page: mgpu-poold with played hosts
	$(SUB) -C ctl pool
	$(SUB) -C tools/bench pool-agents
	$(SUB) -C tools/demo/pool
	@tools/demo/pool/run

bench-sched: all ## measure the scheduler; writes build/bench/sched.json
	$(SUB) -C tools/bench sched
	@tools/bench/sched/run

bench-isolation: all ## measure what hostile guests take; writes build/bench/isolation.json
	$(SUB) -C tools/bench isolation
	@tools/bench/isolation/run

bench-unmap: all ## measure unmapping of guest memory; writes build/bench/unmap.json
	$(SUB) -C tools/bench unmap
	@tools/bench/unmap/run

bench-alloc: sim ## measure the allocators; writes build/bench/alloc.json
	$(SUB) -C tools/bench alloc
	@tools/bench/alloc/run

bench-control: all ## measure control (40 minutes: five demos, and more); writes build/bench/control.json
	$(SUB) -C tools/bench control
	@tools/bench/control/run

bench-preempt: all ## measure preemption; writes build/bench/preempt.json
	$(SUB) -C tools/bench preempt
	@tools/bench/preempt/run

bench-virtio: all ## measure GL on a shared virtio-gpu; writes build/bench/virtio.json
	@tools/bench/virtio/run

bench-render: all debian13 ## measure guests of mgpu-renderd; writes build/bench/render.json
	$(SUB) -C tools/bench isolation
	@tools/bench/render/run

# A guest needs the test host, its modules and mgpu-renderd.
bench-deferred: $(if $(filter-out unix,$(TRANSPORT)),all) ## measure remoted OpenCL and CUDA (TRANSPORT=unix,vsock,vgpu); writes build/bench/deferred.json
	$(SUB) -C ctl remote defer
	@tools/bench/deferred/run $(if $(TRANSPORT),--transport $(TRANSPORT))

bench-place: ## compare placements on traces (NODES=, TASKS=, TRAIN=); writes build/bench/place.json
	$(SUB) -C ctl place
	@tools/bench/place/run --nodes "$(NODES)" --tasks $(TASKS) --train "$(TRAIN)"

bench-learn: sim ## compare models of shares (NODES=, TASKS=, TRAIN=, PAIRS=); writes build/bench/learn.json
	$(SUB) -C tools/bench learn
	@tools/bench/learn/run $(if $(PAIRS),--pairs "$(PAIRS)") \
		$(if $(NODES),--nodes "$(NODES)" --tasks $(TASKS) --train "$(TRAIN)")

bench-scrape: ctl ## measure a scrape of mgpu-exporter (a minute); writes build/bench/scrape.json
	$(SUB) -C tools/bench scrape
	@tools/bench/operate/scrape

bench-operate: all ## measure gpuctl, mgpu-exporter and mgpud with 1,000 vGPUs (25 minutes); writes build/bench/operate.json
	@tools/bench/operate/run

bench-pool: deps ## measure mgpu-poold (20 minutes; NODES=, TASKS=, CRASHES=1000, REAL=yes); writes build/bench/pool.json
	$(SUB) -C ctl pool
	$(SUB) -C tools/bench pool
	@NODES="$(NODES)" TASKS="$(TASKS)" CRASHES="$(CRASHES)" REAL="$(REAL)" tools/bench/pool/run

learn-weights: sim ## make the weights of models again that the project ships (minutes)
	@tools/learn/weights ctl/learn/weights

# Comments of headers are converted by a script of the test kernel's source.
htmldocs: kernel ## build the documentation as HTML, in build/htmldocs
	@sphinx-build -q -W --keep-going -b html -d $(BUILD)/htmldocs/.doctrees \
		Documentation $(BUILD)/htmldocs
	@echo 'htmldocs: $(BUILD)/htmldocs/index.html'

check: all unit fuzz-targets kselftest prometheus postgresql sshd ## run the tests, all but the longest (30 minutes)
	@tests/run

# Each of the kernels, one after the other; what one finds stops no other.
check-long: ## run what takes hours: every kernel, soak, an hour of fuzzing a target
	+@bad=; for kernel in 6.1 6.12 backports debug; do \
		$(MAKE) --no-print-directory KERNEL=$$kernel all unit fuzz-targets kselftest \
			debian13 libvirt prometheus postgresql sshd && \
		KERNEL=$$kernel MGPU_LONG=1 tests/run \
			$$([ $$kernel = 6.1 ] || echo static/modules.sh kselftest e2e) \
			$$([ $$kernel != debug ] || echo device) || \
			bad="$$bad $$kernel"; \
	done; [ -z "$$bad" ] || { echo "check-long: failed on:$$bad"; exit 1; }

check-static: all ## only the checks that run nothing
	@tests/run static

check-unit: all unit prometheus postgresql sshd ## only the tests in user space
	@tests/run unit

check-fuzz: fuzz-targets ## only the short fuzz runs
	@tests/run fuzz

check-kselftest: all kselftest ## only the tests on the loaded modules
	@tests/run kselftest

check-e2e: all debian13 libvirt ## only the tests with real VMs, all of them
	@tests/run e2e

# Kernel self-tests cover most of what these show, in less time.
check-e2e-rest: all ## the tests with real VMs that check leaves out, but for the slowest
	@tests/run 'e2e/!(smoke|gl|render|remote|debian13|venus|dmabuf|libvirt|pool|pool-vgpu|pool-agent).sh'

# Scripts of the kernel self-tests are about mgpud and gpuctl, and test_render_kills mostly
# about mgpu-renderd, which 6.1 covers; no decision of the scheduler depends on the kernel;
# races are looked for on the debug kernel, which runs test_starved, too.
check-kernel: all kselftest ## only what depends on the test kernel: KERNEL=6.12
	@tests/run static/modules.sh \
		'kselftest/!(*.sh|test_*kills|test_sched|test_pacing|test_starved|test_fuzz*|test_races)' \
		kselftest/test_gpu_bind.sh e2e/smoke.sh

check-kernels: ## check-kernel on each kernel that Debian offers (KERNELS="6.12 backports"), and a table
	+@tests/kernels $(KERNELS)

# The scheduler's decisions, those of eBPF policies and of cgroups, what mgpud leaves behind, and
# what each command and query does, are those on 6.1. What is left has hostile guests, races, and
# memory that goes away or runs out. test_clear looks for other guests' pixels, with another renderer
# of the GPU: a second host.
check-debug: ## C programs of the kernel self-tests that break things, on a kernel with checkers
	+@$(MAKE) --no-print-directory KERNEL=debug kmod kselftest
	@KERNEL=debug tests/run \
		'kselftest/!(*.sh|test_mgpud_kills|test_render_kills|test_sched|test_pacing|test_clear|test_bpf_policy|test_cgroup|test_sysfs|test_config_space|test_handshake|test_interrupts|test_commands|test_display|test_netlink)'

check-packaging: deps ## install, boot, upgrade and purge the packages; SUITES="bookworm trixie boot boot-trixie"
	@tests/run $(foreach suite,$(or $(SUITES),*),'packaging/$(suite).sh')

mutations: all unit kselftest ## break the code in each way that tests/mutations lists; the tests must notice
	@tests/mutate

coverage: ## say which lines of the modules the kernel self-tests run
	+@$(MAKE) --no-print-directory KERNEL=debug kernel kmod kselftest
	@tests/coverage

vm-shell: kernel ## a shell in the test host
	@tools/vm/shell --kernel $(KERNEL)

clean: ## remove what was built; keep kernels and downloads
	@rm -rf $(BUILD)/kmod $(BUILD)/tcg $(BUILD)/bpf $(BUILD)/ctl $(BUILD)/guest \
		$(BUILD)/unit $(BUILD)/fuzz $(BUILD)/fuzz-device $(BUILD)/kselftest $(BUILD)/check \
		$(BUILD)/check-* $(BUILD)/ci-* $(BUILD)/bench $(BUILD)/sim \
		$(BUILD)/vm $(BUILD)/coverage $(BUILD)/mutate $(BUILD)/deb $(BUILD)/htmldocs \
		$(BUILD)/packaging/debs-* $(BUILD)/packaging/*-disk

distclean: ## remove build/
	@rm -rf $(BUILD)
