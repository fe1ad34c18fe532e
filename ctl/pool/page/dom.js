// SPDX-License-Identifier: GPL-2.0-only
// Elements, and texts for people.  Texts of the service only ever become text nodes and values.

const SVG = "http://www.w3.org/2000/svg";

// Attributes whose values are code, or which the policy of the page forbids.
function refuse(name) {
    if (/^(on|style$|srcdoc$)/i.test(name))
        throw new Error(`attribute '${name}' is not allowed`);
}

function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false)
            continue;
        if (name === "on") {
            for (const [event, fn] of Object.entries(value))
                node.addEventListener(event, fn);
            continue;
        }
        refuse(name);
        node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false)
        .map(c => (c instanceof Node ? c : String(c))));
    return node;
}

/** Make an element of HTML; attribute "on" has listeners by event. */
export function el(name, attributes = {}, ...children) {
    return fill(document.createElement(name), attributes, children);
}

/** Make an element of SVG. */
export function svg(name, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Set a node's text if it differs, so that readers of the screen hear changes only. */
export function setText(node, text) {
    if (node.textContent !== text)
        node.textContent = text;
}

export function byId(id) {
    return document.getElementById(id);
}

let labels = 0;

/** Return an id that no other element has. */
export function newId(prefix) {
    return `${prefix}-${++labels}`;
}

// ---- numbers and times ----

const thousands = new Intl.NumberFormat("en");
const stamp = new Intl.DateTimeFormat("en-GB", {
    dateStyle: "short", timeStyle: "medium",
});
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short" });

export function number(value) {
    return thousands.format(value);
}

export function plural(count, word) {
    return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** 1536 -> "1.5 GiB"; 0: "". */
export function mib(value) {
    if (!value)
        return "";
    for (const [size, unit] of [[1 << 20, "TiB"], [1 << 10, "GiB"]])
        if (value >= size)
            return `${Number((value / size).toFixed(1))} ${unit}`;
    return `${value} MiB`;
}

/** Two units at most: "45 s", "3 min", "2 h 10 min", "5 d 3 h". */
export function duration(seconds) {
    const s = Math.max(0, Math.round(seconds));

    if (s < 60)
        return `${s} s`;
    if (s < 3600)
        return `${Math.floor(s / 60)} min`;
    if (s < 86400)
        return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

export function percent(part) {
    return part === null ? "" : `${Math.round(part * 100)} %`;
}

export function date(seconds) {
    return seconds ? stamp.format(new Date(seconds * 1000)) : "";
}

export function timeOfDay(seconds) {
    return clock.format(new Date(seconds * 1000));
}

export function dayOf(seconds) {
    return day.format(new Date(seconds * 1000));
}

/** A time as an element with a machine's form of it. */
export function timeNode(seconds) {
    if (!seconds)
        return document.createTextNode("");
    return el("time", { datetime: new Date(seconds * 1000).toISOString() }, date(seconds));
}

// ---- parts of the page ----

export function badge(word, kind = word) {
    return el("span", { class: `badge is-${kind}` }, word);
}

export function button(label, fn, { kind = "", name, action } = {}) {
    return el("button", {
        type: "button", class: kind, "aria-label": name, "data-action": action,
        on: { click: fn },
    }, label);
}

/** A bar of 0 to 1 with its number behind it. */
export function bar(part) {
    const width = Math.max(0, Math.min(1, part || 0)) * 60;

    return el("span", { class: "bar" },
        svg("svg", { width: 60, height: 8, viewBox: "0 0 60 8", "aria-hidden": "true" },
            svg("rect", { class: "track", width: 60, height: 8, rx: 2 }),
            svg("rect", { class: "f0", width, height: 8, rx: 2 })),
        el("span", {}, part === null ? "unknown" : percent(part)));
}

let liveTimer = null;
let liveTexts = [];

/** Say something to readers of the screen, together with what else comes within a second. */
export function announce(text) {
    liveTexts.push(text);
    if (liveTimer)
        return;
    liveTimer = setTimeout(() => {
        const more = liveTexts.length - 3;
        const texts = liveTexts.slice(0, 3);

        if (more > 0)
            texts.push(`${plural(more, "more change")}.`);
        byId("live").textContent = texts.join(" ");
        liveTexts = [];
        liveTimer = null;
    }, 1000);
}

/** Show a short message that goes by itself; readers of the screen hear it. */
export function toast(text) {
    const node = el("p", { class: "toast" }, text);

    byId("toasts").append(node);
    setTimeout(() => node.remove(), 8000);
}
