// SPDX-License-Identifier: GPL-2.0-only
// The views: each has a node and draws what the model has.  Actions are calls of act.

import {
    badge, bar, button, duration, el, mib, number, percent, plural, setText, timeNode,
} from "./dom.js";
import { learned, useOfOne, useOverTime } from "./model.js";
import { Plot, strip } from "./plot.js";
import { Table } from "./table.js";

const TILES = 30;
const BINS = 96;
const STRIP_BINS = 48;
export const DAY = 86400;
const RANGES = [["1 hour", 3600], ["6 hours", 6 * 3600], ["24 hours", DAY], ["7 days", 7 * DAY]];

// ---- texts ----

/** What a request wants, besides its kind of work. */
export function wants(r) {
    return [
        r.type || { any: "any GPU", whole: "a whole GPU", vgpu: "a vGPU" }[r.target],
        r.memory_mib ? `${mib(r.memory_mib)} of memory` : "",
        r.precision !== "any" ? r.precision.toUpperCase() : "",
        r.capabilities.join(" and "),
        r.size_mib ? `${mib(r.size_mib)} of data` : "",
    ].filter(Boolean).join(", ");
}

/** An action on a request; what it is called depends on the state. */
export function endWord(r) {
    return r.state === "queued" ? "Cancel" : "Release";
}

function stateCell(r, model) {
    const warned = model.warned(r);

    return {
        key: `${r.state} ${warned}`,
        make: () => [badge(r.state), warned ? badge("idle: warned", "warned") : ""],
    };
}

function linkCell(text, fn, name) {
    return { key: text, make: () => button(text, fn, { kind: "text", name, action: "open" }) };
}

function useCell(part) {
    return { key: percent(part), make: () => bar(part) };
}

function timeCell(seconds) {
    return { key: String(seconds), make: () => timeNode(seconds) };
}

// ---- columns of requests ----

function requestColumns(model, act) {
    const id = {
        id: "id", label: "Request", kind: "keep", get: r => r.id,
        cell: r => linkCell(String(r.id), () => act.showRequest(r.id), `Request ${r.id}`),
    };
    const state = {
        id: "state", label: "State", get: r => r.state, cell: r => stateCell(r, model),
    };
    const vm = { id: "vm", label: "VM", kind: "name", get: r => r.vm };
    const project = { id: "project", label: "Project", get: r => r.project };
    const kind = { id: "kind", label: "Kind of work", get: r => r.kind };
    const acts = {
        id: "acts", label: "Actions", kind: "acts", fixed: true, get: () => "",
        cell: r => actsCell(r, model, act),
    };

    return { id, state, vm, project, kind, acts };
}

function actsCell(r, model, act) {
    const may = model.mayChange(r.project) && r.state !== "releasing";
    const extend = may && r.state === "active";

    return {
        key: `${may} ${r.state}`,
        make: () => [
            may ? button(endWord(r), () => act.endRequest(r.id), {
                kind: "danger", action: "end", name: `${endWord(r)} request ${r.id} of ${r.vm}`,
            }) : "",
            extend ? button("Extend", () => act.extendRequest(r.id), {
                action: "extend", name: `Extend request ${r.id} of ${r.vm}`,
            }) : "",
        ],
    };
}

function queueTable(model, act, options = {}) {
    const c = requestColumns(model, act);

    return new Table({
        caption: "waiting requests", id: r => r.id, ...options, empty: "No request waits.",
        sort: { column: "place", down: false },
        columns: [
            { id: "place", label: "Place", kind: "num", get: r => r.place ?? Infinity,
                cell: r => (r.place ? String(r.place) : "") },
            c.id, c.vm, c.project, c.kind,
            { id: "wants", label: "Wants", get: wants },
            { id: "asked", label: "Waits for", kind: "keep", get: r => r.asked,
                cell: r => duration(model.now() - r.asked) },
            { id: "why", label: "Reason", kind: "prose", get: r => r.why },
            c.acts,
        ],
    });
}

// How long, and until when if there is a lease.
function heldCell(r, model) {
    const held = r.attached ? duration(model.now() - r.attached) : "";

    return {
        key: `${held} ${r.until}`,
        make: () => [held, r.until ? [el("br"), "lease until", el("br"), timeNode(r.until)] : ""],
    };
}

function lentTable(model, act) {
    const c = requestColumns(model, act);

    return new Table({
        caption: "GPUs in use", id: r => r.id, empty: "No VM has a GPU.",
        choices: [
            { label: "all", test: () => true },
            { label: "active", test: r => r.state === "active" },
            { label: "attaching or releasing", test: r => r.state !== "active" },
            { label: "idle: warned", test: r => model.warned(r) },
        ],
        columns: [
            c.id, c.state, c.vm, c.project, c.kind,
            { id: "gpu", label: "GPU", kind: "keep", get: r => r.gpu,
                cell: r => linkCell(r.gpu, () => act.showGpu(r.gpu), `GPU ${r.gpu}`) },
            { id: "use", label: "Use now", kind: "keep", get: r => model.useNow(r) ?? -1,
                cell: r => (r.state === "active" ? useCell(model.useNow(r)) : "") },
            { id: "since", label: "Held for", kind: "keep", get: r => r.attached ?? Infinity,
                cell: r => heldCell(r, model) },
            { id: "why", label: "Why this GPU", kind: "prose", get: r => r.why },
            c.acts,
        ],
    });
}

function closedTable(model, act) {
    const c = requestColumns(model, act);

    return new Table({
        caption: "requests that are over", id: r => r.id, rows: 20, empty: "No request is over.",
        sort: { column: "ended", down: true }, older: act.older("closed"),
        columns: [
            c.id, c.state, c.vm, c.project, c.kind,
            { id: "gpu", label: "GPU", kind: "keep", get: r => r.gpu ?? "" },
            { id: "held", label: "Held for", kind: "keep",
                get: r => (r.attached ? r.ended - r.attached : 0),
                cell: r => (r.attached ? duration(r.ended - r.attached) : "") },
            { id: "ended", label: "Ended", kind: "keep", get: r => r.ended ?? 0,
                cell: r => timeCell(r.ended) },
            { id: "why", label: "Reason", kind: "prose", get: r => r.why },
        ],
    });
}

// ---- parts ----

function section(title, text, ...nodes) {
    return el("div", {}, el("div", { class: "head" }, el("h3", {}, title),
        text ? el("p", { class: "soft" }, text) : null), nodes);
}

function usePlot() {
    return new Plot({
        title: "GPUs lent and at work", unit: "GPUs", text: "GPUs that VMs had, and how much of " +
            "them worked. A vGPU counts as its part of its GPU's slots.",
        series: [
            { name: "in VMs", kind: "area", colour: 5 },
            { name: "at work", kind: "area", colour: 0 },
            { name: "in the pool", kind: "limit", colour: 7 },
        ],
    });
}

function drawUsePlot(plot, model, data) {
    const all = model.gpus.filter(g => g.present && !g.offline).length;

    plot.draw({ from: data.from, to: data.to,
        values: [data.lent, data.busy, data.lent.map(() => all)] });
}

function eventNodes([time, what, request, object, text]) {
    const of = `${request ? ` #${request}` : ""}${object ? ` ${object}` : ""}`;

    return [timeNode(time), el("b", {}, what), of, text ? `: ${text}` : ""];
}

// Items of a list, of which only those that changed are drawn.
class Listing {
    constructor(node) {
        this.node = node;
        this.keys = [];
    }

    draw(items, make) {
        items.forEach((item, i) => this.drawItem(i, JSON.stringify(item), () => make(item)));
        while (this.node.children.length > items.length)
            this.node.lastChild.remove();
        this.keys.length = items.length;
    }

    drawItem(i, key, make) {
        if (i < this.node.children.length && this.keys[i] === key)
            return;
        const item = this.node.children[i] ?? this.node.appendChild(el("li"));
        const focused = item.contains(document.activeElement);

        this.keys[i] = key;
        item.replaceChildren(...[make()].flat());
        if (focused)
            item.querySelector("button")?.focus();
    }
}

// ---- overview ----

class Overview {
    constructor(model, act) {
        this.model = model;
        this.act = act;
        this.figures = new Listing(el("ul", { class: "figures" }));
        this.notes = new Listing(el("ul", { class: "notes" }));
        this.tiles = new Listing(el("ul", { class: "tiles" }));
        this.plot = usePlot();
        this.queue = queueTable(model, act, { rows: 8, plain: true });
        this.log = new Listing(el("ul", { class: "log" }));
        this.more = el("p", {}, el("a", { href: "#gpus" }, "All GPUs"));
        this.body = [
            this.figures.node, this.notes.node,
            section("GPUs", null, this.tiles.node, this.more),
            el("div", { class: "columns" }, this.plot.node,
                section("Latest events", null, this.log.node)),
            section("Queue", null, this.queue.node),
        ];
    }

    draw() {
        const { model } = this;
        const now = model.usedAt || model.now();

        this.figures.draw(this.facts(), ([value, text]) => [
            el("strong", {}, value), el("span", {}, text)]);
        this.drawNotes();
        this.drawTiles();
        drawUsePlot(this.plot, model, useOverTime(model, now - DAY, now, BINS));
        this.queue.set(model.queue());
        this.log.draw(model.events.slice(0, 8).map(
            e => [e.time, e.what, e.request, e.object, e.text]), eventNodes);
    }

    facts() {
        const { model } = this;
        const ready = model.gpus.filter(g => g.present && !g.offline);
        const queue = model.queue();
        const used = ready.filter(g => g.used).length;
        const rates = model.open.map(r => model.useNow(r)).filter(u => u !== null);
        const holders = new Set(model.holding().map(r => r.vm));
        const hosts = model.status.hosts ?? [];
        const oldest = Math.min(...queue.map(r => r.asked));

        return [
            [`${number(used)} of ${number(ready.length)}`, "GPUs in VMs"],
            [rates.length ? percent(rates.reduce((a, b) => a + b, 0) / rates.length) : "–",
                "mean use of these"],
            [number(queue.length), queue.length ?
                `waiting, the first for ${duration(model.now() - oldest)}` : "requests wait"],
            [`${number(holders.size)} of ${number(model.vms.length)}`, "VMs with a GPU"],
            [`${hosts.filter(h => h.up).length} of ${hosts.length}`, "hosts that answer"],
        ];
    }

    drawNotes() {
        const hosts = (this.model.status.hosts ?? []).filter(h => !h.up)
            .map(h => `Host ${h.name} does not answer${h.why ? `: ${h.why}` : "."}`);

        this.notes.node.hidden = !hosts.length;
        this.notes.draw(hosts, text => text);
    }

    drawTiles() {
        const { model, act } = this;
        const shown = model.gpus.slice(0, TILES);

        this.tiles.draw(shown.map(g => ({
            name: g.name, model: g.model, state: model.gpuState(g), holder: holderOf(g, model),
            use: model.useOfGpu(g), why: g.offline || !g.present ? whyOfGpu(g, model) : "",
        })), tile => el("button", {
            type: "button", class: `tile is-${tile.state.split(" ")[0]}`,
            "data-action": tile.name, on: { click: () => act.showGpu(tile.name) },
        }, el("b", {}, tile.name), el("span", { class: "soft model" }, tile.model),
        el("span", {}, badge(tile.state, tile.state.split(" ")[0]), tile.holder),
        tile.why ? el("span", { class: "soft" }, tile.why) : null,
        tile.use === null ? null : bar(tile.use)));
        this.more.hidden = model.gpus.length <= TILES;
        setText(this.more.firstChild, `All ${number(model.gpus.length)} GPUs`);
    }
}

/** Holders of a GPU in words: those of other projects have no names. */
function holderOf(gpu, model) {
    const vms = model.ofGpu(gpu.name).map(r => r.vm);
    const others = gpu.used - vms.length;

    if (others > 0)
        vms.push(vms.length ? `${plural(others, "other")}` : "another project");
    return vms.length > 3 ? plural(vms.length, "VM") : vms.join(", ");
}

// ---- GPUs ----

class Gpus {
    constructor(model, act) {
        const is = state => g => model.gpuState(g).startsWith(state);

        this.model = model;
        this.table = new Table({
            caption: "GPUs", id: g => g.name, empty: "No host of the pool has a GPU. " +
                "Check the hosts with “mgpu-poold check”.",
            choices: [
                { label: "all", test: () => true }, { label: "free", test: is("free") },
                { label: "in use", test: g => g.used > 0 },
                { label: "offline or missing", test: g => g.offline || !g.present },
            ],
            columns: [
                { id: "name", label: "GPU", kind: "keep", get: g => g.name,
                    cell: g => linkCell(g.name, () => act.showGpu(g.name), `GPU ${g.name}`) },
                { id: "model", label: "Model", get: g => g.model },
                { id: "target", label: "Given as", kind: "keep", get: g => g.target,
                    cell: g => (g.target === "whole" ? "whole" :
                        `vGPUs, ${g.used} of ${g.slots}`) },
                { id: "memory", label: "Memory", kind: "num", get: g => g.memory_mib ?? 0,
                    cell: g => mib(g.memory_mib) },
                { id: "state", label: "State", get: g => model.gpuState(g),
                    cell: g => stateOfGpu(g, model) },
                { id: "vm", label: "VM", kind: "name", get: g => holderOf(g, model) },
                { id: "request", label: "Request", kind: "keep",
                    get: g => model.ofGpu(g.name)[0]?.id ?? "",
                    cell: g => requestsCell(g, model, act) },
                { id: "use", label: "Use now", kind: "keep", get: g => model.useOfGpu(g) ?? -1,
                    cell: g => useOfGpuCell(g, model) },
                { id: "why", label: "Why", kind: "prose", get: g => whyOfGpu(g, model) },
                { id: "acts", label: "Actions", kind: "acts", fixed: true, get: () => "",
                    cell: g => gpuActs(g, model, act) },
            ],
        });
        this.body = [this.table.node];
    }

    draw() {
        this.table.set(this.model.gpus);
    }
}

function useOfGpuCell(gpu, model) {
    const active = model.ofGpu(gpu.name).some(r => r.state === "active");

    return active ? useCell(model.useOfGpu(gpu)) : "";
}

function stateOfGpu(gpu, model) {
    const state = model.gpuState(gpu);

    return { key: state, make: () => badge(state, state.split(" ")[0]) };
}

function requestsCell(gpu, model, act) {
    const ids = model.ofGpu(gpu.name).map(r => r.id);

    return {
        key: ids.join(" "),
        make: () => ids.map(id => [button(String(id), () => act.showRequest(id), {
            kind: "text", name: `Request ${id}`, action: `open ${id}`,
        }), " "]).flat(),
    };
}

function whyOfGpu(gpu, model) {
    if (gpu.offline || !gpu.present)
        return gpu.why || "libvirt does not list it";
    return model.ofGpu(gpu.name).slice(0, 2).map(r => r.why).join("; ");
}

function gpuActs(gpu, model, act) {
    const word = gpu.offline ? "Put online" : "Take offline";

    return {
        key: `${model.isAdmin()} ${gpu.offline}`,
        make: () => (model.isAdmin() ? [
            button(word, () => act.setOffline(gpu.name), { action: "offline",
                name: `${word}: ${gpu.name}` }),
            button("Describe", () => act.describeGpu(gpu.name), { action: "describe",
                name: `Describe ${gpu.name}` }),
        ] : []),
    };
}

// ---- requests ----

class Requests {
    constructor(model, act) {
        this.model = model;
        this.queue = queueTable(model, act);
        this.lent = lentTable(model, act);
        this.closed = closedTable(model, act);
        this.body = [
            section("Queue", "Requests wait here in the order in which they are served next.",
                this.queue.node),
            section("GPUs in use", null, this.lent.node),
            section("Over", "The newest requests that are over.", this.closed.node),
        ];
    }

    draw() {
        this.queue.set(this.model.queue());
        this.lent.set(this.model.holding());
        this.closed.set(this.model.closed);
    }
}

// ---- VMs ----

class Vms {
    constructor(model, act) {
        this.model = model;
        this.table = new Table({
            caption: "VMs", id: v => v.name, empty: "No VM is known. Define VMs with libvirt.",
            choices: [
                { label: "all", test: () => true },
                { label: "with a GPU", test: v => model.ofVm(v.name).some(r => r.gpu) },
                { label: "waiting", test: v => model.ofVm(v.name).some(r => r.state === "queued") },
                { label: "pinned", test: v => v.pinned },
            ],
            columns: [
                { id: "name", label: "VM", get: v => v.name,
                    cell: v => linkCell(v.name, () => act.showVm(v.name), `VM ${v.name}`) },
                { id: "host", label: "Host", get: v => v.host },
                { id: "project", label: "Project", get: v => v.project ?? "" },
                { id: "gpu", label: "Requests", get: v => requestsOfVm(v, model) },
                { id: "pinned", label: "Pinned", get: v => (v.pinned ? "pinned" : ""),
                    cell: v => ({ key: String(v.pinned),
                        make: () => (v.pinned ? badge("pinned", "active") : "") }) },
                { id: "seen", label: "Agent seen", kind: "keep", get: v => -(v.seen ?? 0),
                    cell: v => (v.seen ? `${duration(model.now() - v.seen)} ago` : "never") },
                { id: "consent", label: "Use may be read", kind: "keep",
                    get: v => (v.consent ? "yes" : "no") },
                { id: "acts", label: "Actions", kind: "acts", fixed: true, get: () => "",
                    cell: v => vmActs(v, model, act) },
            ],
        });
        this.body = [this.table.node];
    }

    draw() {
        this.table.set(this.model.vms);
    }
}

function requestsOfVm(vm, model) {
    return model.ofVm(vm.name).map(r => `${r.kind}: ${r.gpu ? `${r.state} on ${r.gpu}` :
        `queued, place ${r.place ?? "?"}`}`).join("; ");
}

function vmActs(vm, model, act) {
    const admin = model.isAdmin();
    const pin = vm.pinned ? "Unpin" : "Pin";

    return {
        key: `${admin} ${model.mayChange(vm.project)} ${vm.pinned}`,
        make: () => [
            model.mayChange(vm.project) ? button("Request", () => act.ask(vm.name), {
                action: "ask", name: `Request a GPU for ${vm.name}` }) : "",
            admin ? button(pin, () => act.pin(vm.name), { action: "pin",
                name: `${pin} ${vm.name}` }) : "",
            admin ? button("Project", () => act.setProject(vm.name), { action: "project",
                name: `Set the project of ${vm.name}` }) : "",
            admin ? button("New key", () => act.newKey(vm.name), { action: "key",
                name: `Make a new agent key for ${vm.name}` }) : "",
        ],
    };
}

// ---- use over time ----

class Use {
    constructor(model, act) {
        this.model = model;
        this.act = act;
        this.range = el("select", { on: { change: () => act.range(this.seconds()) } },
            RANGES.map(([label, s]) => el("option", { value: s, selected: s === DAY }, label)));
        this.project = el("select", { on: { change: () => this.draw() } });
        this.plot = usePlot();
        this.queue = new Plot({
            title: "Requests that wait", unit: "count", height: 160,
            text: "Requests in the queue, of those that the page has.",
            series: [{ name: "waiting", kind: "line", colour: 1 }],
        });
        this.makeTable();
        this.body = [
            el("div", { class: "tools" }, el("label", {}, "Time", this.range),
                el("label", {}, "Project", this.project)),
            this.plot.node, this.queue.node,
            section("Use of each GPU", "Light: in a VM. Dark: at work.", this.table.node),
        ];
    }

    seconds() {
        return Number(this.range.value);
    }

    makeTable() {
        this.table = new Table({
            caption: "use of GPUs", id: g => g.name, rows: 25, empty: "No GPU is known.",
            sort: { column: "lent", down: true },
            columns: [
                { id: "name", label: "GPU", get: g => g.name },
                { id: "model", label: "Model", get: g => g.model },
                { id: "strip", label: "Over time", fixed: true, get: () => "",
                    cell: g => ({ key: JSON.stringify(g.bins), make: () => strip(g.bins) }) },
                { id: "lent", label: "In VMs", kind: "num", get: g => g.lent,
                    cell: g => percent(g.lent) },
                { id: "busy", label: "At work", kind: "num", get: g => g.busy,
                    cell: g => percent(g.busy) },
                { id: "idle", label: "Lent, but idle", kind: "num", get: g => g.lent - g.busy,
                    cell: g => percent(Math.max(0, g.lent - g.busy)) },
            ],
        });
    }

    draw() {
        const { model } = this;
        const now = model.usedAt || model.now();
        const from = now - this.seconds();

        this.drawProjects();
        const data = useOverTime(model, from, now, BINS, this.project.value);

        drawUsePlot(this.plot, model, data);
        this.queue.draw({ from, to: now, values: [data.waiting] });
        this.table.set(model.gpus.map(g => useRow(model, g, from, now)));
    }

    drawProjects() {
        const value = this.project.value;
        const names = ["", ...this.model.projects.map(p => p.name)];

        if (this.names === names.join("\n"))
            return;
        this.names = names.join("\n");
        this.project.replaceChildren(...names.map(n => el("option", { value: n }, n || "all")));
        this.project.value = names.includes(value) ? value : "";
    }
}

function useRow(model, gpu, from, to) {
    const bins = useOfOne(model, gpu, from, to, STRIP_BINS);
    const mean = field => bins.reduce((sum, b) => sum + b[field], 0) / bins.length;

    return { name: gpu.name, model: gpu.model, bins, lent: mean("lent"), busy: mean("busy") };
}

// ---- history ----

class History {
    constructor(model, act) {
        this.model = model;
        this.file = button("Download all as CSV", () => act.downloadHistory(), {});
        this.learned = new Table({
            caption: "what the pool learned", id: g => g.id, rows: 20,
            empty: "No work has ended with success yet. Until then, the pool chooses the " +
                "smallest GPU that fits.",
            columns: [
                { id: "kind", label: "Kind of work", get: g => g.kind },
                { id: "model", label: "Model", get: g => g.model },
                { id: "count", label: "Times", kind: "num", get: g => g.count },
                { id: "median", label: "Median time", kind: "num", get: g => g.median,
                    cell: g => duration(g.median) },
                { id: "busy", label: "At work", kind: "num", get: g => g.busy ?? -1,
                    cell: g => percent(g.busy) },
                { id: "memory", label: "Memory, most", kind: "num", get: g => g.memory,
                    cell: g => mib(g.memory) },
                { id: "energy", label: "Energy, mean", kind: "num", get: g => g.energy ?? -1,
                    cell: g => (g.energy === null ? "" : `${number(Math.round(g.energy))} J`) },
            ],
        });
        this.rows = new Table({
            caption: "history", id: r => r.request, rows: 25, empty: "The history is empty.",
            sort: { column: "ended", down: true }, older: act.older("history"),
            columns: [
                { id: "request", label: "Request", kind: "keep", get: r => r.request },
                { id: "ended", label: "Ended", kind: "keep", get: r => r.ended,
                    cell: r => timeCell(r.ended) },
                { id: "project", label: "Project", get: r => r.project },
                { id: "kind", label: "Kind of work", get: r => r.kind },
                { id: "model", label: "Model", get: r => r.model },
                { id: "size", label: "Data", kind: "num", get: r => r.size_mib,
                    cell: r => mib(r.size_mib) },
                { id: "seconds", label: "Time", kind: "num", get: r => r.seconds,
                    cell: r => duration(r.seconds) },
                { id: "busy", label: "At work", kind: "num", get: r => r.busy_ns,
                    cell: r => (r.seconds ?
                        percent(Math.min(1, r.busy_ns / 1e9 / r.seconds)) : "") },
                { id: "done", label: "Success", get: r => (r.done ? "yes" : "no") },
            ],
        });
        this.body = [
            section("What the pool learned", "Time of each kind of work on each model of GPU: " +
                "the pool chooses by it.", this.learned.node),
            section("Work that ended", null, this.file, this.rows.node),
        ];
    }

    draw() {
        this.file.hidden = !this.model.isAdmin() &&
            (this.model.you.role !== "viewer" || Boolean(this.model.you.project));
        this.learned.set(learned(this.model.history));
        this.rows.set(this.model.history);
    }
}

// ---- events ----

class Events {
    constructor(model, act) {
        this.model = model;
        this.table = new Table({
            caption: "events", id: e => e.id, empty: "Nothing has happened yet.",
            sort: { column: "id", down: true }, older: act.older("events"),
            choices: [
                { label: "all", test: () => true },
                { label: "by people", test: e => !/^(service$|vm:)/.test(e.actor) },
                { label: "by agents", test: e => e.actor.startsWith("vm:") },
                { label: "by the service", test: e => e.actor === "service" },
            ],
            columns: [
                { id: "id", label: "Number", kind: "num", get: e => e.id },
                { id: "time", label: "Time", kind: "keep", get: e => e.time,
                    cell: e => timeCell(e.time) },
                { id: "actor", label: "By", get: e => e.actor },
                { id: "what", label: "Event", get: e => e.what },
                { id: "request", label: "Request", get: e => e.request ?? "",
                    cell: e => (e.request ? linkCell(String(e.request),
                        () => act.showRequest(e.request), `Request ${e.request}`) : "") },
                { id: "object", label: "Object", get: e => e.object },
                { id: "text", label: "Text", kind: "prose", get: e => e.text },
            ],
        });
        this.body = [this.table.node];
    }

    draw() {
        this.table.set(this.model.events);
    }
}

// ---- administration ----

class Admin {
    constructor(model, act) {
        this.model = model;
        this.tokens = new Table({
            caption: "tokens", id: t => t.name, empty: "There are no tokens.",
            columns: [
                { id: "name", label: "Token", get: t => t.name },
                { id: "role", label: "Role", get: t => t.role },
                { id: "project", label: "Project", get: t => t.project ?? "" },
                { id: "expires", label: "Valid until", kind: "keep",
                    get: t => t.expires ?? Infinity,
                    cell: t => (t.expires ? timeCell(t.expires) : "no end") },
                { id: "acts", label: "Actions", kind: "acts", fixed: true, get: () => "",
                    cell: t => ({ key: "x", make: () => button("Revoke",
                        () => act.revoke(t.name), { kind: "danger", action: "revoke",
                            name: `Revoke token ${t.name}` }) }) },
            ],
        });
        this.projects = new Table({
            caption: "projects", id: p => p.name, empty: "There are no projects.",
            columns: [
                { id: "name", label: "Project", get: p => p.name },
                { id: "weight", label: "Weight", kind: "num", get: p => p.weight },
                { id: "max", label: "GPUs at most", kind: "num", get: p => p.max_gpus || Infinity,
                    cell: p => (p.max_gpus ? number(p.max_gpus) : "no limit") },
                { id: "used", label: "GPUs now", kind: "num", get: p => p.used },
                { id: "queued", label: "Waiting", kind: "num", get: p => p.queued },
                { id: "acts", label: "Actions", kind: "acts", fixed: true, get: () => "",
                    cell: p => ({ key: "x", make: () => [
                        button("Change", () => act.editProject(p.name), { action: "edit",
                            name: `Change project ${p.name}` }),
                        button("Remove", () => act.removeProject(p.name), { kind: "danger",
                            action: "remove", name: `Remove project ${p.name}` }),
                    ] }) },
            ],
        });
        this.about = el("dl", {});
        this.hosts = new Listing(el("ul", { class: "log" }));
        this.body = [
            section("Tokens", "A token lets a person or a program call the service.",
                button("New token", () => act.newToken(), {}), this.tokens.node),
            section("Projects", "Projects share the pool by their weights.",
                button("New project", () => act.editProject(null), {}), this.projects.node),
            section("Service", null, this.about, this.hosts.node),
        ];
    }

    draw() {
        const s = this.model.status;

        this.tokens.set(this.model.tokens);
        this.projects.set(this.model.projects);
        this.about.replaceChildren(...[
            ["Version", s.version], ["Database", s.database], ["Runs for", duration(s.uptime ?? 0)],
        ].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "")]));
        this.hosts.draw((s.hosts ?? []).map(h => [h.name, h.up, h.why, h.gpus, h.vms]),
            ([name, up, why, gpus, vms]) => [
                badge(up ? "up" : "down", up ? "yes" : "down"), `${name}: ` +
                `${plural(gpus ?? 0, "GPU")}, ${plural(vms ?? 0, "VM")}${why ? `. ${why}` : ""}`]);
    }
}

/** All views by the name in the address. */
export function makeViews(model, act) {
    return [
        ["overview", "Overview", Overview], ["gpus", "GPUs", Gpus],
        ["requests", "Requests", Requests], ["vms", "VMs", Vms], ["use", "Use over time", Use],
        ["history", "History", History], ["events", "Events", Events],
        ["admin", "Administration", Admin],
    ].map(([id, title, View]) => {
        const view = new View(model, act);
        const heading = el("h2", { id: `${id}-title`, tabindex: "-1" }, title);
        const node = el("section", { id: `view-${id}`, "aria-labelledby": `${id}-title`,
            hidden: true }, heading, view.body);

        return { id, title, heading, node, view };
    });
}

// ---- details ----

function facts(list) {
    return el("dl", {}, list.filter(([, value]) => value !== "" && value !== null &&
        value !== undefined).flatMap(([name, value]) => [el("dt", {}, name),
        el("dd", {}, value)]));
}

export function gpuDetails(gpu, model) {
    return [
        facts([
            ["State", model.gpuState(gpu)], ["Reason", whyOfGpu(gpu, model)],
            ["Model", gpu.model], ["Host", gpu.host],
            ["Given as", gpu.target === "whole" ? "a whole GPU" : "vGPUs"],
            ["Slots", `${gpu.used} of ${gpu.slots} used`], ["Memory", mib(gpu.memory_mib)],
            ["Capabilities", gpu.capabilities.join(", ")],
            ["Fast at", gpu.precisions.map(p => p.toUpperCase()).join(", ")],
            ["vGPU types", gpu.types.join(", ")], ["IOMMU group", gpu.group],
            ["Functions", gpu.functions.join(", ")],
        ]),
        el("h3", {}, "In it now"),
        el("ul", { class: "log" }, model.ofGpu(gpu.name).map(r => el("li", {},
            `Request ${r.id} of ${r.vm} (${r.kind}), ${r.state}. ${r.why}`))),
    ];
}

export function requestDetails(r, model, events) {
    const time = name => (r[name] ? timeNode(r[name]) : "");

    return [
        facts([
            ["State", r.state + (r.place ? `, place ${r.place}` : "")],
            [r.gpu ? "Why this GPU" : "Reason", r.why], ["VM", r.vm], ["Project", r.project],
            ["Kind of work", r.kind], ["Wants", wants(r)], ["GPU", r.gpu], ["Model", r.model],
            ["mdev", r.uuid], ["Weight", r.weight],
            ["Floor", r.floor_fps ? `${r.floor_fps} frames/s` : ""],
            ["Use now", percent(model.useNow(r))], ["Asked", time("asked")],
            ["Chosen", time("chosen")], ["Attached", time("attached")],
            ["Waited", r.attached ? duration(r.attached - r.asked) : ""],
            ["Lease until", time("until")], ["Idle warning", time("warned")],
            ["Ended", time("ended")], ["Client's key", r.key],
        ]),
        el("h3", {}, "Events"),
        el("ul", { class: "log" }, events.map(e => el("li", {}, timeNode(e.time),
            `${e.what}: ${e.text || e.object} (${e.actor})`))),
    ];
}

export function vmDetails(vm, model) {
    return [
        facts([
            ["Host", vm.host], ["Project", vm.project], ["UUID", vm.uuid],
            ["Pinned", vm.pinned ? "yes: its GPUs are not taken back when they are idle" : "no"],
            ["Agent seen", vm.seen ? timeNode(vm.seen) : "never"],
            ["Use may be read", vm.consent ? timeNode(vm.consent) : "no: the VM did not agree"],
            ["Requests", requestsOfVm(vm, model)],
        ]),
    ];
}

