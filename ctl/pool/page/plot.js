// SPDX-License-Identifier: GPL-2.0-only
// Plots as SVG, each with a key and a table of its numbers, as gpuctl report has them.

import { dayOf, el, newId, svg, timeOfDay } from "./dom.js";

const LEFT = 40;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 26;
const TABLE_ROWS = 24;
const TIME_STEPS = [60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** A step of an axis, 1, 2 or 5 times a power of ten, so that there are @count at most. */
export function stepOf(top, count) {
    const ten = 10 ** Math.floor(Math.log10(top / count));

    return [1, 2, 5, 10].map(f => f * ten).find(step => top / step <= count);
}

/** A value's text: as many digits as a figure of GPUs needs. */
function figure(value) {
    return String(Number(value.toFixed(value < 10 ? 2 : 1)));
}

/**
 * A plot over time.  title, text; series: [{name, kind: "area"|"line"|"limit", colour: 0 to 7}].
 * draw({from, to, values: [numbers of each series]}).
 */
export class Plot {
    constructor({ title, text, unit, series, height = 220 }) {
        this.series = series;
        this.unit = unit;
        this.height = height;
        this.title = title;
        this.titleId = newId("plot");
        this.canvas = el("div", { class: "canvas" });
        this.rows = el("div", { class: "wide" });
        this.sum = el("p", { class: "soft" });
        this.details = el("details", { on: { toggle: () => this.drawTable() } },
            el("summary", {}, `Numbers of “${title}”`), this.rows);
        this.node = el("figure", {},
            el("figcaption", {}, el("h3", {}, title), el("p", { class: "soft" }, text)),
            el("ul", { class: "key" }, series.map(s => el("li", {},
                svg("svg", { width: 22, height: 10, "aria-hidden": "true" },
                    s.kind === "area" ?
                        svg("rect", { class: `f${s.colour}`, width: 22, height: 10 }) :
                        svg("path", { class: `${s.kind === "limit" ? "d" : "l"}${s.colour}`,
                            d: "M0 5H22" })),
                s.name))),
            this.canvas, this.sum, this.details);
        new ResizeObserver(() => this.redraw()).observe(this.canvas);
    }

    draw(data) {
        this.data = data;
        this.redraw();
        this.drawTable();
    }

    redraw() {
        const width = Math.floor(this.canvas.clientWidth);

        if (!this.data || width < 100)
            return;
        this.width = width;
        this.scale();
        this.canvas.replaceChildren(svg("svg", {
            viewBox: `0 0 ${width} ${this.height}`, width, height: this.height, role: "img",
            "aria-labelledby": this.titleId,
        }, svg("title", { id: this.titleId }, `${this.title}: ${this.summary()}`),
        this.axes(), this.series.map((s, i) => this.shape(s, this.data.values[i]))));
        this.sum.textContent = this.summary();
    }

    /** The last numbers and the mean, in a sentence. */
    summary() {
        return this.series.map((s, i) => {
            const values = this.data.values[i];
            const mean = values.reduce((a, b) => a + b, 0) / values.length;

            return s.kind === "limit" ? `${s.name}: ${figure(values[values.length - 1])}` :
                `${s.name}: ${figure(values[values.length - 1])} now, ${figure(mean)} on average`;
        }).join("; ") + ".";
    }

    scale() {
        const top = Math.max(1, ...this.data.values.flat());

        this.step = Math.max(stepOf(top, 5), this.unit === "count" ? 1 : 0);
        this.top = this.step * Math.ceil(top / this.step - 1e-9);
    }

    x(time) {
        const { from, to } = this.data;

        return LEFT + (time - from) / (to - from) * (this.width - LEFT - RIGHT);
    }

    y(value) {
        return this.height - BOTTOM - value / this.top * (this.height - TOP - BOTTOM);
    }

    axes() {
        const nodes = [];

        for (let value = 0; value <= this.top * 1.0001; value += this.step)
            nodes.push(svg("path", { class: "g",
                d: `M${LEFT} ${this.y(value).toFixed(1)}H${this.width - RIGHT}` }),
            svg("text", { x: LEFT - 6, y: (this.y(value) + 4).toFixed(1),
                "text-anchor": "end" }, figure(value)));
        return [...nodes, ...this.timeAxis()];
    }

    timeAxis() {
        const { from, to } = this.data;
        const room = (this.width - LEFT - RIGHT) / 64;
        const step = TIME_STEPS.find(s => (to - from) / s <= room) ?? 7 * 86400;
        const zone = new Date(to * 1000).getTimezoneOffset() * 60;
        const bottom = this.height - BOTTOM;
        const nodes = [];

        for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to; t += step)
            nodes.push(svg("path", { class: "g",
                d: `M${this.x(t).toFixed(1)} ${bottom}v5` }),
            svg("text", { x: Math.min(this.x(t), this.width - 18).toFixed(1), y: bottom + 19,
                "text-anchor": "middle" }, step >= 86400 ? dayOf(t) : timeOfDay(t)));
        return nodes;
    }

    shape(series, values) {
        const { from, to } = this.data;
        const width = (to - from) / values.length;
        const at = values.map((v, i) => `${i ? "V" : "M"}${i ? "" : `${LEFT} `}` +
            `${this.y(v).toFixed(1)}H${this.x(from + (i + 1) * width).toFixed(1)}`).join("");

        if (series.kind === "area")
            return svg("path", { class: `f${series.colour}`,
                d: `${at}V${this.y(0).toFixed(1)}H${LEFT}Z` });
        return svg("path", { class: `${series.kind === "limit" ? "d" : "l"}${series.colour}`,
            d: at });
    }

    // The table is made when it is open.
    drawTable() {
        if (!this.data || !this.details.open)
            return;
        const { from, to, values } = this.data;
        const bins = values[0].length;
        const group = Math.ceil(bins / TABLE_ROWS);
        const mean = list => list.reduce((a, b) => a + b, 0) / list.length;
        const rows = [];

        for (let i = 0; i < bins; i += group) {
            const at = from + i * (to - from) / bins;

            rows.push(el("tr", {},
                el("th", { scope: "row" }, `${dayOf(at)} ${timeOfDay(at)}`),
                values.map(v => el("td", {}, figure(mean(v.slice(i, i + group)))))));
        }
        this.rows.replaceChildren(el("table", {},
            el("caption", { class: "hidden" }, `${this.title}, means of ` +
                `${Math.round((to - from) / bins * group / 60)} minutes`),
            el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "from"),
                this.series.map(s => el("th", { scope: "col" }, s.name)))),
            el("tbody", {}, rows)));
    }
}

/** A strip of a GPU's use over time: darker where it worked more. */
export function strip(values, { width = 160, height = 14 } = {}) {
    const step = width / values.length;

    return svg("svg", { class: "strip", width, height, viewBox: `0 0 ${width} ${height}`,
        preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", width, height }),
    values.map(({ lent, busy }, i) => [
        lent > 0.01 ? svg("rect", { class: "f5", x: (i * step).toFixed(1), y: 0,
            width: (step + 0.3).toFixed(1), height, "fill-opacity": lent.toFixed(2) }) : null,
        busy > 0.01 ? svg("rect", { class: "f0", x: (i * step).toFixed(1),
            y: (height * (1 - busy)).toFixed(1), width: (step + 0.3).toFixed(1),
            height: (height * busy).toFixed(1) }) : null,
    ]));
}
