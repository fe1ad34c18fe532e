// SPDX-License-Identifier: GPL-2.0-only
/* Load the BPF programs of the rate loop and read their counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "account.skel.h"
#include "cputime.skel.h"
#pragma GCC diagnostic pop

#include "bpf_why.h"
#include "clock.h"
#include "frames/counters.h"
#include "cputime.h"

/* Retries of a reading that a thread switch disturbed. */
#define READ_TRIES	8

/* CPU time of a VMM since it was first seen. */
struct known_vmm {
	uint32_t tgid;
	uint32_t slot;
	uint64_t slot_ns;	/* last reading of its slot, ns */
	uint64_t ns;		/* CPU time, ns */
};

struct counters {
	struct account_bpf *account;
	struct cputime_bpf *cputime;
	bool charge;
	struct mgpu_account *accounts;
	struct mgpu_cpu_slot *slots;
	struct mgpu_cpu_cell *cells;
	struct mgpu_cpu_owner *owners;
	size_t nr_cells;
	struct mgpu_cpu_cell *before, *after;
	uint32_t *want_owner;	/* last owner by ID, according to the module */
	uint64_t idle_ns;
	struct known_vmm *vmms;
	size_t nr_vmms;
};

/* ---- loading ---- */

/* True if mgpu.ko has mgpu_charge(). */
static bool have_charge(void)
{
	struct btf *vmlinux = btf__load_vmlinux_btf(), *module = NULL;
	bool found = false;

	if (!vmlinux)
		return false;
	module = btf__load_module_btf("mgpu", vmlinux);
	if (module)
		found = btf__find_by_name_kind(module, "mgpu_charge", BTF_KIND_FUNC) > 0;
	btf__free(module);
	btf__free(vmlinux);
	return found;
}

static void *map_array(struct bpf_map *map)
{
	size_t size = (size_t)bpf_map__max_entries(map) *
		((bpf_map__value_size(map) + 7) / 8 * 8);
	void *mem = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static void unmap_array(void *mem, struct bpf_map *map)
{
	if (mem)
		munmap(mem, (size_t)bpf_map__max_entries(map) *
		       ((bpf_map__value_size(map) + 7) / 8 * 8));
}

static int try_account(struct counters *c, bool charge)
{
	struct account_bpf *skel = account_bpf__open();
	int ret;

	if (!skel)
		return -errno;
	bpf_program__set_autoload(skel->progs.job_done_charge, charge);
	bpf_program__set_autoload(skel->progs.job_done_count, !charge);
	bpf_program__set_autoload(skel->progs.job_preempt_charge, charge);
	bpf_program__set_autoload(skel->progs.job_preempt_count, !charge);
	ret = account_bpf__load(skel);
	if (!ret) {
		c->accounts = map_array(skel->maps.accounts);
		ret = c->accounts ? account_bpf__attach(skel) : -errno;
	}
	if (ret) {
		unmap_array(c->accounts, skel->maps.accounts);
		c->accounts = NULL;
		account_bpf__destroy(skel);
		return ret;
	}
	c->account = skel;
	c->charge = charge;
	return 0;
}

static void open_account(struct counters *c, char *why, size_t len)
{
	bool charge = have_charge();
	int ret = -ENOENT;

	if (charge)
		ret = try_account(c, true);
	if (ret && ret != -EPERM) {
		int plain = try_account(c, false);

		if (!plain) {
			if (charge)
				bpf_why_say(why, len, "mgpu_charge() cannot be called (%s), so the module charges engine time by itself.",
					    strerror(-ret));
			else
				bpf_why_say(why, len, "mgpu.ko has no mgpu_charge(), so it charges engine time by itself.");
		}
		ret = plain;
	}
	if (ret)
		bpf_why(why, len, "accounting", ret);
}

static int try_cputime(struct counters *c)
{
	struct cputime_bpf *skel = cputime_bpf__open();
	int cpus = libbpf_num_possible_cpus(), ret;

	if (!skel)
		return -errno;
	c->nr_cells = cpus > 0 ? (size_t)cpus : 1;
	ret = bpf_map__set_max_entries(skel->maps.cpus, (uint32_t)c->nr_cells);
	if (!ret)
		ret = cputime_bpf__load(skel);
	if (ret)
		goto out;
	c->slots = map_array(skel->maps.slots);
	c->cells = map_array(skel->maps.cpus);
	c->owners = map_array(skel->maps.vgpu_owner);
	c->before = calloc(c->nr_cells, sizeof(*c->before));
	c->after = calloc(c->nr_cells, sizeof(*c->after));
	c->want_owner = calloc(MGPU_BPF_IDS, sizeof(*c->want_owner));
	if (!c->slots || !c->cells || !c->owners || !c->before || !c->after ||
	    !c->want_owner) {
		ret = -ENOMEM;
		goto out;
	}
	ret = cputime_bpf__attach(skel);
out:
	c->cputime = skel;
	return ret;
}

static void close_cputime(struct counters *c)
{
	if (!c->cputime)
		return;
	unmap_array(c->slots, c->cputime->maps.slots);
	unmap_array(c->cells, c->cputime->maps.cpus);
	unmap_array(c->owners, c->cputime->maps.vgpu_owner);
	free(c->before);
	free(c->after);
	free(c->want_owner);
	cputime_bpf__destroy(c->cputime);
	c->cputime = NULL;
}

int counters_open(struct counters **counters, char *why, size_t len)
{
	struct counters *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	why[0] = '\0';
	bpf_why_init();
	open_account(c, why, len);
	ret = try_cputime(c);
	if (ret) {
		close_cputime(c);
		bpf_why(why, len, "CPU time", ret);
	}
	*counters = c;
	return 0;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	if (c->account) {
		unmap_array(c->accounts, c->account->maps.accounts);
		account_bpf__destroy(c->account);
	}
	close_cputime(c);
	free(c->vmms);
	free(c);
}

bool counters_account(const struct counters *c)
{
	return c && c->account;
}

bool counters_charge(const struct counters *c)
{
	return c && c->account && c->charge;
}

bool counters_cputime(const struct counters *c)
{
	return c && c->cputime;
}

/* ---- reading ---- */

const struct mgpu_account *counters_vgpu(const struct counters *c, uint32_t id)
{
	return c->accounts && id < MGPU_BPF_IDS ? &c->accounts[id] : NULL;
}

static void set_owner(struct counters *c, uint32_t vgpu, uint32_t tgid)
{
	struct mgpu_owner_args args = { .vgpu = vgpu, .tgid = tgid };
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts),
		.ctx_in = &args,
		.ctx_size_in = sizeof(args),
	};

	bpf_prog_test_run_opts(bpf_program__fd(c->cputime->progs.owner), &opts);
}

void counters_owners(struct counters *c, const struct sample_vgpu *vgpus,
		     size_t nr, bool at_once)
{
	size_t j = 0;

	if (!c->cputime)
		return;
	for (uint32_t id = 0; id < MGPU_BPF_IDS; id++) {
		uint32_t want = 0, have;

		while (j < nr && vgpus[j].id < id)
			j++;
		if (j < nr && vgpus[j].id == id)
			want = vgpus[j].tgid;
		have = __atomic_load_n(&c->owners[id].tgid, __ATOMIC_RELAXED);
		if (have != want && (at_once || c->want_owner[id] == want))
			set_owner(c, id, want);
		c->want_owner[id] = want;
	}
}

static int compare_tgid(const void *a, const void *b)
{
	const struct known_vmm *x = a, *y = b;

	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

static struct known_vmm *find_known(const struct counters *c, uint32_t tgid)
{
	struct known_vmm key = { .tgid = tgid };

	return c->nr_vmms ? bsearch(&key, c->vmms, c->nr_vmms, sizeof(key),
				    compare_tgid) : NULL;
}

/* Slots in use, sorted by thread group. */
static int list_vmms(const struct counters *c, struct known_vmm **list, size_t *nr)
{
	size_t n = 0, room = 64;
	struct known_vmm *v = malloc(room * sizeof(*v)), *more;

	if (!v)
		return -ENOMEM;
	for (uint32_t s = MGPU_CPU_SLOT_FIRST; s < MGPU_CPU_SLOTS; s++) {
		uint32_t tgid = __atomic_load_n(&c->slots[s].tgid, __ATOMIC_RELAXED);

		if (!tgid)
			continue;
		if (n == room) {
			room *= 2;
			more = realloc(v, room * sizeof(*v));
			if (!more) {
				free(v);
				return -ENOMEM;
			}
			v = more;
		}
		v[n++] = (struct known_vmm){ .tgid = tgid, .slot = s };
	}
	qsort(v, n, sizeof(*v), compare_tgid);
	*list = v;
	*nr = n;
	return 0;
}

static void copy_cells(const struct counters *c, struct mgpu_cpu_cell *to)
{
	for (size_t i = 0; i < c->nr_cells; i++) {
		const struct mgpu_cpu_cell *cell = &c->cells[i];

		to[i].slot = __atomic_load_n(&cell->slot, __ATOMIC_ACQUIRE);
		to[i].since = __atomic_load_n(&cell->since, __ATOMIC_ACQUIRE);
	}
}

static bool same_cells(const struct counters *c)
{
	for (size_t i = 0; i < c->nr_cells; i++)
		if (c->before[i].slot != c->after[i].slot ||
		    (c->before[i].slot && c->before[i].since != c->after[i].since))
			return false;
	return true;
}

static uint64_t slot_ns(const struct counters *c, uint32_t slot)
{
	return __atomic_load_n(&c->slots[slot].ns, __ATOMIC_ACQUIRE);
}

static uint64_t running_ns(const struct counters *c, uint32_t slot, uint64_t now)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < c->nr_cells; i++)
		if (c->before[i].slot == slot && now > c->before[i].since)
			ns += now - c->before[i].since;
	return ns;
}

void counters_cpu(struct counters *c, struct sample *s)
{
	struct known_vmm *list;
	size_t nr, kept = 0;
	uint64_t idle = 0;

	if (list_vmms(c, &list, &nr)) {
		s->nr_vmms = 0;
		return;
	}
	for (unsigned int i = 0; i < READ_TRIES; i++) {
		copy_cells(c, c->before);
		idle = slot_ns(c, MGPU_CPU_SLOT_IDLE);
		for (size_t k = 0; k < nr; k++)
			list[k].slot_ns = slot_ns(c, list[k].slot);
		s->now_ns = now_ns();
		copy_cells(c, c->after);
		if (same_cells(c))
			break;
	}
	/* the next reading has what a disturbed one lacks */
	idle += running_ns(c, MGPU_CPU_SLOT_IDLE, s->now_ns);
	if (idle > c->idle_ns)
		c->idle_ns = idle;
	s->idle_ns = c->idle_ns;

	for (size_t k = 0; k < nr; k++) {
		const struct known_vmm *old = find_known(c, list[k].tgid);

		list[k].slot_ns += running_ns(c, list[k].slot, s->now_ns);
		if (!old || old->slot != list[k].slot)
			continue;
		list[k].ns = old->ns;
		if (list[k].slot_ns > old->slot_ns)
			list[k].ns += list[k].slot_ns - old->slot_ns;
		else
			list[k].slot_ns = old->slot_ns;
	}
	free(c->vmms);
	c->vmms = list;
	c->nr_vmms = nr;

	for (size_t k = 0; k < s->nr_vmms; k++) {
		const struct known_vmm *v = find_known(c, s->vmms[k].tgid);

		if (!v)
			continue;
		s->vmms[kept].tgid = v->tgid;
		s->vmms[kept++].cpu_ns = v->ns;
	}
	s->nr_vmms = kept;
}

uint64_t counters_missed(const struct counters *c)
{
	uint64_t sum = 0;

	if (c->account)
		sum += bpf_missed(c->account->obj);
	if (c->cputime)
		sum += bpf_missed(c->cputime->obj) +
			__atomic_load_n(&c->cputime->bss->slots_missing, __ATOMIC_RELAXED);
	return sum;
}
