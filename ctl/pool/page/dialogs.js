// SPDX-License-Identifier: GPL-2.0-only
// Dialogs, and what people do with them.  The service checks every right again.

import { announce, button, el, newId, toast } from "./dom.js";
import { call, download, get, part } from "./service.js";
import { endWord, gpuDetails, requestDetails, vmDetails } from "./views.js";

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), " +
    "summary, [tabindex='0']";
const NAME = {
    required: true, pattern: "[A-Za-z0-9_][A-Za-z0-9._\\-]*",
    title: "letters, digits, dots, underscores and hyphens",
};
const UNITS = [["minutes", 60], ["hours", 3600], ["days", 86400]];

// ---- the frame ----

// Tab goes round within the dialog.
function trap(dialog, event) {
    if (event.key !== "Tab")
        return;
    const nodes = [...dialog.querySelectorAll(FOCUSABLE)].filter(n => n.getClientRects().length);
    const first = nodes[0];
    const last = nodes[nodes.length - 1];

    if (event.shiftKey && document.activeElement === first) {
        last.focus();
        event.preventDefault();
    } else if (!event.shiftKey && document.activeElement === last) {
        first.focus();
        event.preventDefault();
    }
}

/** Show a dialog; its node is gone, with what it held, when it closes. */
function open(title, body, { small = false } = {}) {
    const id = newId("dialog");
    const opener = document.activeElement;
    const dialog = el("dialog", { "aria-labelledby": id, class: small ? "small" : null },
        body(el("h2", { id, tabindex: "-1" }, title)));

    dialog.addEventListener("keydown", event => trap(dialog, event));
    dialog.addEventListener("close", () => {
        dialog.remove();
        if (opener?.isConnected)
            opener.focus();
        else
            document.getElementById("content").focus();
    });
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector("[data-first]") ?? dialog.querySelector("[type=submit]") ??
        dialog.querySelector("h2")).focus();
    return dialog;
}

/** Close all dialogs, such as when the session ends. */
export function closeAll() {
    for (const dialog of document.querySelectorAll("dialog"))
        dialog.close();
}

/**
 * A dialog with a form. submit() calls the service; it closes when that worked, and shows the
 * service's text when not.
 */
function form({ title, fields, word, danger, submit, small }) {
    const fault = el("p", { class: "bad", role: "alert" });
    const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, word);
    let dialog = null;
    const onSubmit = async event => {
        event.preventDefault();
        fault.textContent = "";
        go.disabled = true;
        try {
            await submit();
            dialog.close();
        } catch (error) {
            go.disabled = false;
            fault.textContent = error.message;
            go.focus();
        }
    };

    dialog = open(title, heading => el("form", { on: { submit: onSubmit } }, heading, fields,
        fault, el("div", { class: "buttons" }, go,
            button("Close", () => dialog.close(), { name: `Close “${title}”` }))),
    { small });
    return dialog;
}

function sheet(title, body) {
    const dialog = open(title, heading => el("div", { class: "sheet" }, heading, body,
        el("div", { class: "buttons" },
            el("button", { type: "button", on: { click: () => dialog.close() } }, "Close"))));

    return dialog;
}

// ---- fields ----

/** A field with its label and a hint. */
function field(label, input, hint) {
    const id = newId("field");

    input.id = id;
    if (hint)
        input.setAttribute("aria-describedby", `${id}-hint`);
    return el("div", { class: "field" }, el("label", { for: id }, label), input,
        hint ? el("small", { id: `${id}-hint` }, hint) : null);
}

function text(attributes = {}) {
    return el("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: 63,
        ...attributes });
}

function count(attributes = {}) {
    return el("input", {
        type: "number", inputmode: "decimal", min: 0, step: "any", ...attributes,
    });
}

function choice(options, value) {
    return el("select", {}, options.map(([v, label]) => el("option", {
        value: v, selected: v === value }, label)));
}

/** A text with proposals. */
function proposals(names, attributes) {
    const id = newId("names");
    const input = text({ ...attributes, list: id });

    return { input, list: el("datalist", { id }, names.map(n => el("option", { value: n }))) };
}

/** Boxes to tick: value() has those that are. */
function boxes(legend, options, ticked = []) {
    const inputs = options.map(([value, label]) => ({
        value, label, input: el("input", { type: "checkbox", checked: ticked.includes(value) }),
    }));

    return {
        node: el("fieldset", { class: "field" }, el("legend", {}, legend),
            inputs.map(i => el("label", {}, i.input, i.label))),
        value: () => inputs.filter(i => i.input.checked).map(i => i.value),
    };
}

/** A length of time: value() in seconds, 0 for none. */
function span(label, hint, amount = "") {
    const input = count({ value: amount, max: 100000 });
    const unit = choice(UNITS.map(([name]) => [name, name]), "hours");

    unit.setAttribute("aria-label", `Unit of “${label}”`);
    return {
        nodes: [field(label, input, hint), el("div", { class: "field" },
            el("span", { "aria-hidden": "true" }, "Unit"), unit)],
        value: () => Math.round((Number(input.value) || 0) *
            UNITS.find(([name]) => name === unit.value)[1]),
    };
}

// A key makes a second attempt of the same form the same request.
function newRequestKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(12));

    return `page-${[...bytes].map(b => b.toString(16).padStart(2, "0")).join("")}`;
}

const PRECISIONS = [["fp64", "FP64"], ["fp32", "FP32"], ["fp16", "FP16"], ["fp8", "FP8"]];
const CAPABILITIES = [["3d", "3D"], ["compute", "compute"]];
const gib = input => Math.round((Number(input.value) || 0) * 1024);

// ---- a request ----

function wishFields(model, vm) {
    const vms = model.vms.filter(v => model.mayChange(v.project)).map(v => v.name);
    const kinds = [...new Set([...model.history, ...model.open].map(r => r.kind))].sort();
    const lease = span("Lease", "The GPU is taken back then. Empty: when it is released, or idle.");

    return {
        vm: proposals(vms, { required: true, value: vm ?? (vms.length === 1 ? vms[0] : null),
            "data-first": !vm }),
        kind: proposals(kinds, {
            required: true, pattern: "[a-z0-9._\\-]+", "data-first": Boolean(vm),
            title: "small letters, digits, dots, underscores and hyphens",
        }),
        target: choice([["any", "any"], ["whole", "a whole GPU"], ["vgpu", "a vGPU"]], "any"),
        memory: count({ max: 16384 }), size: count({ max: 1 << 30 }),
        precision: choice([["any", "any"], ...PRECISIONS], "any"),
        capabilities: boxes("It must be able to do", CAPABILITIES), lease,
        type: text(), weight: count({ min: 1, max: 10000, step: 1 }), floor: count({ max: 1000 }),
    };
}

function wishOf(f, key) {
    const wish = {
        key, vm: f.vm.input.value.trim(), kind: f.kind.input.value.trim(), target: f.target.value,
        size_mib: gib(f.size), memory_mib: gib(f.memory), precision: f.precision.value,
        capabilities: f.capabilities.value(), lease_s: f.lease.value(),
    };

    if (f.type.value.trim())
        wish.type = f.type.value.trim();
    if (f.weight.value)
        wish.weight = Math.round(Number(f.weight.value));
    if (Number(f.floor.value) > 0)
        wish.floor_fps = Number(f.floor.value);
    return wish;
}

function tellRequest(r) {
    const where = r.state === "queued" ? `waits, place ${r.place ?? "unknown"}: ${r.why}` :
        `${r.state}${r.gpu ? `, ${r.gpu}` : ""}: ${r.why}`;

    toast(`Request ${r.id} of ${r.vm}: ${where}`);
    announce(`Request ${r.id} of ${r.vm}: ${where}`);
}

function ask(model, changed, vm) {
    const f = wishFields(model, vm);
    const key = newRequestKey();

    form({
        title: "Request a GPU", word: "Request",
        fields: [
            el("div", { class: "fields" },
                field("VM", f.vm.input), f.vm.list,
                field("Kind of work", f.kind.input, "Such as training: the pool learns by it."),
                f.kind.list, field("Give", f.target),
                field("GPU memory, GiB", f.memory), field("Amount of data, GiB", f.size),
                field("Precision", f.precision), f.capabilities.node, f.lease.nodes),
            el("details", {}, el("summary", {}, "vGPUs"), el("div", { class: "fields" },
                field("vGPU type", f.type, "Empty: the smallest that fits."),
                field("Weight", f.weight, "Its share against other vGPUs: 1 to 10000."),
                field("Floor, frames/s", f.floor))),
        ],
        submit: async () => {
            tellRequest(await call("POST", "/v1/requests", wishOf(f, key)));
            changed();
        },
    });
}

function endRequest(model, changed, id) {
    const r = model.open.find(x => x.id === id);

    if (!r)
        return;
    const done = el("input", { type: "checkbox", id: newId("done"), "data-first": true });
    const word = endWord(r);

    form({
        title: `${word} request ${id}?`, word, danger: true, small: true,
        fields: [
            el("p", {}, r.gpu ? `${r.vm} loses ${r.gpu}. Work on it must have ended.` :
                `${r.vm} waits no more.`),
            r.gpu ? el("label", { class: "check", for: done.id }, done,
                "The work ended with success (the pool learns from its time)") : [],
        ].flat(),
        submit: async () => {
            await call("POST", `/v1/requests/${id}/release`, r.gpu ? { done: done.checked } : {});
            toast(`${word} request ${id}: accepted.`);
            announce(`${word} request ${id}: accepted.`);
            changed();
        },
    });
}

function extendRequest(model, changed, id) {
    const lease = span("From now on", "0: until it is released.", 1);

    form({
        title: `Extend request ${id}`, word: "Extend", small: true,
        fields: [el("div", { class: "fields" }, lease.nodes)],
        submit: async () => {
            await call("POST", `/v1/requests/${id}/extend`, { seconds: lease.value() });
            changed();
        },
    });
}

async function showRequest(model, id) {
    try {
        const [r, { events }] = await Promise.all([
            get(`/v1/requests/${id}`), get(`/v1/requests/${id}/events?limit=200`),
        ]);

        sheet(`Request ${id}`, requestDetails(r, model, events));
    } catch (error) {
        sheet(`Request ${id}`, [el("p", { class: "bad" }, error.message)]);
    }
}

// ---- GPUs ----

const gpuPath = gpu => `/v1/gpus/${part(gpu.host)}/${part(gpu.addr)}`;

function setOffline(model, changed, name) {
    const gpu = model.gpu(name);
    const why = text({ maxlength: 200, required: true, "data-first": true });

    form({
        title: `${gpu.offline ? "Put online" : "Take offline"}: ${name}`, small: true,
        word: gpu.offline ? "Put online" : "Take offline",
        fields: gpu.offline ? [] : [
            el("p", {}, "No VM gets it any more. A VM that has it keeps it."),
            field("Reason", why, "People see it."),
        ],
        submit: async () => {
            await call("PUT", gpuPath(gpu), { offline: !gpu.offline,
                why: gpu.offline ? "" : why.value.trim() });
            changed();
        },
    });
}

function describeGpu(model, changed, name) {
    const gpu = model.gpu(name);
    const label = text({ value: gpu.model, "data-first": true });
    const memory = count({ value: (gpu.memory_mib ?? 0) / 1024, max: 16384 });
    const capabilities = boxes("It can do", CAPABILITIES, gpu.capabilities);
    const precisions = boxes("It is fast at", PRECISIONS, gpu.precisions);

    form({
        title: `Describe ${name}`, word: "Save",
        fields: [el("div", { class: "fields" }, field("Model", label),
            field("Memory, GiB", memory, "0: unknown."), capabilities.node, precisions.node)],
        submit: async () => {
            await call("PUT", gpuPath(gpu), {
                model: label.value.trim(), memory_mib: gib(memory),
                capabilities: capabilities.value(), precisions: precisions.value(),
            });
            changed();
        },
    });
}

// ---- secrets ----

/** Show a secret once: it is in this dialog only, which forgets it. */
function showSecret(title, explanation, secret) {
    const input = text({ value: secret, readonly: true, maxlength: null, "data-first": true,
        "aria-label": title });
    const copy = button("Copy", async () => {
        input.select();
        try {
            await navigator.clipboard.writeText(input.value);
            announce("Copied.");
            copy.textContent = "Copied";
        } catch {
            announce("The text is selected. Copy it with the keyboard.");
        }
    });
    const dialog = sheet(title, [el("p", {}, explanation),
        el("div", { class: "secret" }, input, copy)]);

    input.select();
    dialog.addEventListener("close", () => {
        input.value = "";
        input.removeAttribute("value");
    });
}

function newToken(model, changed) {
    const name = text({ ...NAME, "data-first": true });
    const role = choice([["viewer", "viewer: reads"], ["project", "project: its own requests"],
        ["admin", "admin: everything"]], "viewer");
    const project = choice([["", "all"], ...model.projects.map(p => [p.name, p.name])], "");
    const valid = span("Valid for", "Empty: until it is revoked.");

    form({
        title: "New token", word: "Make",
        fields: [
            el("p", {}, "A token of this name that exists is replaced."),
            el("div", { class: "fields" }, field("Name", name), field("Role", role),
                field("Project", project, "Admins have all."), valid.nodes),
        ],
        submit: async () => {
            const seconds = valid.value();
            const wanted = { role: role.value, project: project.value || null,
                expires: seconds ? Math.round(model.now()) + seconds : null };
            const made = await call("PUT", `/v1/tokens/${part(name.value.trim())}`, wanted);

            changed();
            setTimeout(() => showSecret(`Token ${made.name}`,
                "Copy the token now: the service has only its hash, and shows it never again.",
                made.token));
        },
    });
}

function newKey(model, changed, vm) {
    form({
        title: `New agent key for ${vm}?`, word: "Make a new key", danger: true, small: true,
        fields: [el("p", {}, "The agent's key before it is not valid any more.")],
        submit: async () => {
            const { key } = await call("POST", `/v1/vms/${part(vm)}/key`);

            changed();
            setTimeout(() => showSecret(`Agent key of ${vm}`, "Copy the key now to " +
                "/etc/mgpu/agent.key in the VM, with mode 0600. It is shown only once.", key));
        },
    });
}

// ---- VMs, projects, tokens ----

function setProject(model, changed, name) {
    const vm = model.vms.find(v => v.name === name);
    const project = choice([["", "none"], ...model.projects.map(p => [p.name, p.name])],
        vm.project ?? "");

    form({
        title: `Project of ${name}`, word: "Save", small: true,
        fields: [field("Project", project)],
        submit: async () => {
            await call("PUT", `/v1/vms/${part(name)}`, { project: project.value || null });
            changed();
        },
    });
}

async function pin(model, changed, name) {
    const vm = model.vms.find(v => v.name === name);

    try {
        await call("PUT", `/v1/vms/${part(name)}`, { pinned: !vm.pinned });
        announce(`${name}: ${vm.pinned ? "not pinned any more" : "pinned"}.`);
        changed();
    } catch (error) {
        sheet(`Pin ${name}`, [el("p", { class: "bad" }, error.message)]);
    }
}

function showVm(model, changed, name) {
    const vm = model.vms.find(v => v.name === name);
    const forget = () => form({
        title: `Forget ${name}?`, word: "Forget", danger: true, small: true,
        fields: [el("p", {}, "The service drops the VM with its key and pin. It must have no " +
            "open request. libvirt's VM stays.")],
        submit: async () => {
            await call("DELETE", `/v1/vms/${part(name)}`);
            changed();
        },
    });

    if (vm)
        sheet(`VM ${name}`, [vmDetails(vm, model), model.isAdmin() ?
            button("Forget this VM", () => {
                closeAll();
                forget();
            }, { kind: "danger" }) : []].flat());
}

function editProject(model, changed, name) {
    const old = model.projects.find(p => p.name === name);
    const label = text({ ...NAME, value: name, readonly: Boolean(old), "data-first": !old });
    const weight = count({ min: 1, max: 10000, step: 1, required: true, value: old?.weight ?? 100,
        "data-first": Boolean(old) });
    const max = count({ min: 1, max: 1000000, step: 1, value: old?.max_gpus || null });

    form({
        title: old ? `Project ${name}` : "New project", word: "Save", small: true,
        fields: [el("div", { class: "fields" }, field("Name", label),
            field("Weight", weight, "Its share of the pool: 1 to 10000."),
            field("GPUs at most", max, "Empty: no limit."))],
        submit: async () => {
            await call("PUT", `/v1/projects/${part(label.value.trim())}`, {
                weight: Number(weight.value), max_gpus: Number(max.value) || null });
            changed();
        },
    });
}

function remove(title, explanation, word, path, changed) {
    form({
        title, word, danger: true, small: true, fields: [el("p", {}, explanation)],
        submit: async () => {
            await call("DELETE", path);
            changed();
        },
    });
}

async function downloadHistory() {
    try {
        const url = URL.createObjectURL(await download("/v1/history.csv"));
        const link = el("a", { href: url, download: "mgpu-pool-history.csv" });

        link.click();
        setTimeout(() => URL.revokeObjectURL(url), 10000);
    } catch (error) {
        sheet("History as CSV", [el("p", { class: "bad" }, error.message)]);
    }
}

async function older(model, list, draw) {
    try {
        await model.loadOlder(list);
        draw();
    } catch (error) {
        sheet("Older rows", [el("p", { class: "bad" }, error.message)]);
    }
}

/**
 * All actions; changed() is called after each that changed something, draw() when the model has
 * more; range(seconds) of use.
 */
export function makeActions(model, { changed, draw, range }) {
    return {
        ask: vm => ask(model, changed, vm),
        endRequest: id => endRequest(model, changed, id),
        extendRequest: id => extendRequest(model, changed, id),
        showRequest: id => showRequest(model, id),
        showGpu: name => model.gpu(name) && sheet(`GPU ${name}`,
            gpuDetails(model.gpu(name), model)),
        setOffline: name => setOffline(model, changed, name),
        describeGpu: name => describeGpu(model, changed, name),
        newKey: vm => newKey(model, changed, vm),
        pin: vm => pin(model, changed, vm),
        setProject: vm => setProject(model, changed, vm),
        showVm: vm => showVm(model, changed, vm),
        newToken: () => newToken(model, changed),
        revoke: name => remove(`Revoke token ${name}?`, "Calls with it fail from now on.",
            "Revoke", `/v1/tokens/${part(name)}`, changed),
        editProject: name => editProject(model, changed, name),
        removeProject: name => remove(`Remove project ${name}?`,
            "It must have no open requests and no VMs.", "Remove",
            `/v1/projects/${part(name)}`, changed),
        older: list => ({ more: () => model.hasOlder(list), load: () => older(model, list, draw) }),
        downloadHistory, range,
    };
}
