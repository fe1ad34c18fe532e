// SPDX-License-Identifier: GPL-2.0-only
// The page's copy of the service's state, and what follows from it.  No elements in here.

import { get, token } from "./service.js";

const ROWS = 1000;  // of a list, the API's limit
const EVENTS = 1000;
const CALLS = 20;   // for one list
const names = new Intl.Collator("en", { numeric: true });
const MIN_REFRESH_MS = 500;

export const OPEN_STATES = ["queued", "attaching", "active", "releasing"];
export const HOLDING = ["attaching", "active", "releasing"];

export class Model {
    constructor() {
        this.you = { name: "", role: "viewer", project: "" };
        this.status = {};
        this.gpus = [];
        this.vms = [];
        this.projects = [];
        this.open = [];
        this.closed = [];
        this.events = [];
        this.history = [];
        this.spans = [];        // of use
        this.spanOf = new Map();    // request -> span
        this.usedAt = 0;
        this.tokens = [];
        this.pages = { closed: 1, history: 1, events: 1 };  // that were asked for
        this.more = { closed: false, history: false };      // older ones, behind these
        this.eventsFrom = 0;    // events up to this one are not loaded
        this.after = 0;         // last event that was looked at
        this.skew = 0;          // the service's clock against this one's, s
        this.at = 0;            // time of the figures, ms
    }

    now() {
        return Date.now() / 1000 + this.skew;
    }

    async loadStatus() {
        this.status = await get("/v1/status");
        this.you = this.status.you ?? this.you;
        if (this.status.now)
            this.skew = this.status.now - Date.now() / 1000;
    }

    async loadVms() {
        [this.vms, this.projects] = await Promise.all([
            get("/v1/vms").then(a => a.vms), get("/v1/projects").then(a => a.projects),
        ]);
    }

    async loadRequests() {
        const [gpus, open] = await Promise.all([get("/v1/gpus"), openRequests()]);

        this.gpus = gpus.gpus.sort((a, b) => names.compare(a.name, b.name));
        this.open = open;
        this.index();
        this.at = Date.now();
    }

    async loadClosed() {
        const { rows, more } = await pagesOf("/v1/requests", "requests", "id", this.pages.closed);

        this.closed = rows.filter(r => !OPEN_STATES.includes(r.state));
        this.more.closed = more;
    }

    /** Load the newest events that are not known yet. */
    async loadEvents() {
        let after = this.events[0]?.id ?? Math.max(0, (this.status.last_event ?? 0) - ROWS);

        if (!this.events.length)
            this.eventsFrom = after;
        this.after = after;
        for (let i = 0; i < 20; i++) {
            const { events, next } = await get(`/v1/events?after=${after}&limit=${ROWS}`);

            this.addEvents(events);
            if (next <= after)
                break;
            this.after = after = next;
        }
    }

    async loadHistory() {
        const { rows, more } = await pagesOf("/v1/history", "history", "request",
            this.pages.history);

        this.history = rows;
        this.more.history = more;
    }

    /** Load events before the oldest one, if there are any that this user sees. */
    async loadOlderEvents() {
        const known = this.events.length;

        for (let i = 0; i < CALLS && this.eventsFrom && this.events.length === known; i++) {
            const after = Math.max(0, this.eventsFrom - ROWS);
            const { events } = await get(`/v1/events?after=${after}&limit=${ROWS}`);

            this.addEvents(events.filter(e => e.id <= this.eventsFrom), after);
        }
    }

    /** Whether there are rows behind those of a list: closed, history or events. */
    hasOlder(list) {
        return this.pages[list] < CALLS &&
            (list === "events" ? this.eventsFrom > 0 : this.more[list]);
    }

    /** Load older rows of a list; they stay. */
    async loadOlder(list) {
        const load = { closed: () => this.loadClosed(), history: () => this.loadHistory(),
            events: () => this.loadOlderEvents() };

        this.pages[list]++;
        try {
            await load[list]();
        } catch (error) {
            this.pages[list]--;
            throw error;
        }
    }

    async loadTokens() {
        if (this.isAdmin())
            this.tokens = (await get("/v1/tokens")).tokens;
    }

    /** Load spans of use; @seconds: how far back. */
    async loadUse(seconds) {
        const { spans, now } = await get(`/v1/use?since=${Math.floor(this.now() - seconds)}`);

        this.spans = spans.map(s => ({ ...s, rates: ratesOf(s) }));
        this.spanOf = new Map(this.spans.map(s => [s.request, s]));
        this.usedAt = now;
    }

    async loadAll(seconds) {
        await this.loadStatus();
        await Promise.all([
            this.loadVms(), this.loadRequests(), this.loadClosed(), this.loadEvents(),
            this.loadHistory(), this.loadTokens(), this.loadUse(seconds),
        ]);
    }

    /** Add events, of all behind @from; the newest come first, and only so many are kept. */
    addEvents(events, from = this.eventsFrom) {
        const known = new Set(this.events.map(e => e.id));
        const most = EVENTS * this.pages.events;

        this.events.push(...events.filter(e => !known.has(e.id)));
        this.events.sort((a, b) => b.id - a.id);
        this.eventsFrom = this.events.length > most ? this.events[most].id : from;
        this.events.length = Math.min(this.events.length, most);
    }

    // ---- what follows ----

    index() {
        this.byGpu = new Map();
        this.byVm = new Map();
        for (const r of this.open) {
            if (r.gpu)
                this.byGpu.set(r.gpu, [...(this.byGpu.get(r.gpu) ?? []), r]);
            this.byVm.set(r.vm, [...(this.byVm.get(r.vm) ?? []), r]);
        }
    }

    queue() {
        return this.open.filter(r => r.state === "queued");
    }

    holding() {
        return this.open.filter(r => HOLDING.includes(r.state));
    }

    ofGpu(name) {
        return this.byGpu?.get(name) ?? [];
    }

    ofVm(name) {
        return this.byVm?.get(name) ?? [];
    }

    gpu(name) {
        return this.gpus.find(g => g.name === name);
    }

    /** A word for a GPU: what it does now. */
    gpuState(gpu) {
        if (gpu.offline)
            return "offline";
        if (!gpu.present)
            return "missing";
        const states = this.ofGpu(gpu.name).map(r => r.state);

        for (const state of ["attaching", "releasing"])
            if (states.includes(state))
                return state;
        if (!gpu.used)
            return "free";
        return gpu.used < gpu.slots ? "partly used" : "used";
    }

    /** Part of the time that a request's GPU worked between its last looks; null: unknown. */
    useNow(request) {
        const rates = this.spanOf.get(request.id)?.rates;

        return request.state === "active" && rates?.length ? rates[rates.length - 1].rate : null;
    }

    spansOf(gpu) {
        return this.spans.filter(s => s.gpu === gpu);
    }

    useOfGpu(gpu) {
        const rates = this.ofGpu(gpu.name).map(r => this.useNow(r)).filter(u => u !== null);

        return rates.length ? Math.min(1, rates.reduce((a, b) => a + b, 0)) : null;
    }

    warned(request) {
        return request.state === "active" && request.warned > 0;
    }

    // ---- what the role may ----

    isAdmin() {
        return this.you.role === "admin";
    }

    mayAsk() {
        return this.isAdmin() || this.you.role === "project";
    }

    mayChange(project) {
        return this.isAdmin() || (this.you.role === "project" && project === this.you.project);
    }
}

/**
 * Rows of a list, the newest first, in so many calls of as many rows as the API gives; @id: field
 * that it goes on behind. more: whether there are older ones.
 */
async function pagesOf(path, name, id, calls, query = "") {
    const rows = [];
    let before = "";

    for (let i = 0; i < calls; i++) {
        const page = (await get(`${path}?limit=${ROWS}${query}${before}`))[name];

        rows.push(...page);
        if (page.length < ROWS)
            return { rows, more: false };
        before = `&before=${page[page.length - 1][id]}`;
    }
    return { rows, more: true };
}

async function openRequests() {
    return (await pagesOf("/v1/requests", "requests", "id", CALLS, "&open=1")).rows;
}

/** Part of the time between two looks that a GPU worked, 0 to 1; null: no time. */
export function rate(before, after) {
    const ns = (after.time - before.time) * 1e9;

    if (ns <= 0)
        return null;
    return Math.max(0, Math.min(1, (after.busy_ns - before.busy_ns) / ns));
}

/** Times of a span with a known rate of work: [{from, to, rate}]. */
export function ratesOf(span) {
    let before = { time: span.from, busy_ns: 0 };
    const result = [];

    for (const [time, busy] of span.points) {
        const look = { time, busy_ns: busy };
        const part = rate(before, look);

        if (part !== null)
            result.push({ from: before.time, to: time, rate: part });
        before = look;
    }
    return result;
}

/** Add @value to the bins that a span covers, in proportion. */
function addSpan(bins, from, width, span, value) {
    const first = Math.max(0, Math.floor((span.from - from) / width));

    for (let i = first; i < bins.length; i++) {
        const begin = Math.max(span.from, from + i * width);
        const end = Math.min(span.to, from + (i + 1) * width);

        if (end <= begin)
            break;
        bins[i] += value * (end - begin) / width;
    }
}

/**
 * GPUs that were lent and that worked, and requests that waited, over time.  A vGPU counts as its
 * part of the slots of its GPU.
 */
export function useOverTime(model, from, to, count, project = "") {
    const width = (to - from) / count;
    const zeros = () => new Array(count).fill(0);
    const result = { from, to, width, lent: zeros(), busy: zeros(), waiting: zeros() };
    const own = x => !project || x.project === project;

    for (const span of model.spans.filter(own)) {
        const share = 1 / (model.gpu(span.gpu)?.slots || 1);

        addSpan(result.lent, from, width, { from: span.from, to: span.to ?? to }, share);
        for (const part of span.rates)
            addSpan(result.busy, from, width, part, part.rate);
    }
    for (const r of [...model.open, ...model.closed].filter(own))
        addSpan(result.waiting, from, width,
            { from: r.asked, to: r.chosen || r.ended || to }, 1);
    result.busy = result.busy.map((busy, i) => Math.min(busy, result.lent[i]));
    return result;
}

/** The same of one GPU: [{lent, busy}], each 0 to 1. */
export function useOfOne(model, gpu, from, to, count) {
    const width = (to - from) / count;
    const lent = new Array(count).fill(0);
    const busy = new Array(count).fill(0);

    for (const span of model.spansOf(gpu.name)) {
        addSpan(lent, from, width, { from: span.from, to: span.to ?? to },
            1 / (gpu.slots || 1));
        for (const part of span.rates)
            addSpan(busy, from, width, part, part.rate);
    }
    return lent.map((l, i) => ({ lent: Math.min(1, l), busy: Math.min(1, busy[i]) }));
}

/** Rows of the history by kind of work and model of GPU. */
export function learned(history) {
    const groups = new Map();

    for (const row of history.filter(r => r.done)) {
        const key = `${row.kind}\n${row.model}`;

        groups.set(key, [...(groups.get(key) ?? []), row]);
    }
    return [...groups.values()].map(rows => {
        const times = rows.map(r => r.seconds).sort((a, b) => a - b);
        const sum = field => rows.reduce((total, r) => total + (r[field] ?? 0), 0);
        const energy = rows.filter(r => r.energy_mj > 0);

        return {
            id: `${rows[0].kind} ${rows[0].model}`, kind: rows[0].kind,
            model: rows[0].model, count: rows.length,
            median: times[Math.floor((times.length - 1) / 2)],
            busy: sum("seconds") ? Math.min(1, sum("busy_ns") / 1e9 / sum("seconds")) : null,
            memory: Math.max(...rows.map(r => r.memory_mib ?? 0)),
            energy: energy.length ?
                energy.reduce((t, r) => t + r.energy_mj, 0) / energy.length / 1000 : null,
        };
    });
}

/**
 * Runs a function soon after calls of it, once for many, and not more often than the service and
 * this machine can do: it waits four times as long as the last run took.
 */
export class Refresh {
    constructor(fn, least = MIN_REFRESH_MS) {
        this.fn = fn;
        this.least = least;
        this.wait = MIN_REFRESH_MS;
        this.timer = null;
        this.running = false;
        this.again = false;
    }

    soon() {
        if (this.running)
            this.again = true;
        else if (!this.timer)
            this.timer = setTimeout(() => this.run(), this.wait);
    }

    stop() {
        clearTimeout(this.timer);
        this.timer = null;
        this.again = false;
    }

    async run() {
        const begin = performance.now();

        this.timer = null;
        this.running = true;
        try {
            if (token() !== null)
                await this.fn();
        } finally {
            this.running = false;
            this.wait = Math.max(this.least, 4 * (performance.now() - begin));
            if (this.again) {
                this.again = false;
                this.soon();
            }
        }
    }
}
