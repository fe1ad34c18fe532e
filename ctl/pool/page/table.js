// SPDX-License-Identifier: GPL-2.0-only
// Tables with a filter, a choice, sorting and pages.  Only what changed is drawn, so that the
// focus stays where it is, and 1,000 rows cost no more than the rows of a page.

import { el, newId, number, setText } from "./dom.js";

const ROWS = 50;
const FEW = 5;
const collator = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
    if (typeof a === "number" && typeof b === "number")
        return a - b;
    return collator.compare(String(a), String(b));
}

/**
 * A column: {id, label, get(row): text or number to sort and filter by, cell(row): what it shows,
 * a text or {key, make()}, where make() is called if key changed; kind: a class of its cells;
 * fixed: not sorted by}.
 */
export class Table {
    /**
     * caption, columns, id(row), empty: text without rows; choices: [{label, test(row)}] with
     * the first for all; sort: {column, down}; rows: of a page; plain: without tools; older:
     * {more(): whether there are rows that are not loaded, load(): a promise to load some}.
     */
    constructor(options) {
        this.o = { rows: ROWS, choices: [], ...options };
        this.sort = { ...(this.o.sort ?? { column: this.o.columns[0].id, down: false }) };
        this.page = 0;
        this.rows = [];
        this.drawn = new Map();
        this.makeTools();
        this.makeTable();
        this.node = el("div", { class: "listing" }, this.tools, this.wide, this.none, this.pager);
    }

    makeTools() {
        const changed = () => {
            this.page = 0;
            this.draw();
        };

        this.search = el("input", { type: "search", on: { input: changed }, size: 18 });
        this.choice = el("select", { on: { change: changed } }, this.o.choices.map(
            (c, i) => el("option", { value: i }, c.label)));
        this.order = el("select", { on: { change: () => this.orderChosen() } },
            this.sortable().flatMap(c => [
                el("option", { value: `${c.id} up` }, `${c.label}, up`),
                el("option", { value: `${c.id} down` }, `${c.label}, down`),
            ]));
        this.tools = el("div", { class: "tools" },
            el("label", {}, `Filter ${this.o.caption}`, this.search),
            this.o.choices.length ? el("label", {}, "Show", this.choice) : null,
            el("label", { class: "narrow" }, "Sort by", this.order));
    }

    sortable() {
        return this.o.columns.filter(c => !c.fixed);
    }

    makeTable() {
        this.heads = this.o.columns.map(c => el("th", {
            scope: "col", role: "columnheader", class: c.kind,
        }, c.fixed ? c.label : el("button", {
            type: "button", class: "sort", on: { click: () => this.sortBy(c.id) },
        }, c.label)));
        this.body = el("tbody", { role: "rowgroup" });
        this.captionNode = el("caption", { class: "hidden" }, this.o.caption);
        this.table = el("table", { role: "table", class: "cards", id: newId("table") },
            this.captionNode,
            el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, this.heads)),
            this.body);
        this.wide = el("div", { class: "wide" }, this.table);
        this.none = el("p", { class: "soft" });
        this.range = el("span", { role: "status" });
        this.back = this.turn("Previous page", -1);
        this.on = this.turn("Next page", 1);
        this.older = el("button", { type: "button", hidden: true,
            on: { click: () => this.loadOlder() } }, `Load older ${this.o.caption}`);
        this.pager = el("nav", { class: "pager", "aria-label": `Pages of ${this.o.caption}` },
            this.range, this.back, this.on, this.older);
    }

    // The button keeps the focus: it is not disabled meanwhile.
    async loadOlder() {
        if (this.loading)
            return;
        this.loading = true;
        await this.o.older.load();
        this.loading = false;
    }

    turn(label, step) {
        return el("button", { type: "button", on: { click: () => {
            this.page += step;
            this.draw();
            this.table.scrollIntoView({ block: "nearest" });
        } } }, label);
    }

    sortBy(column) {
        this.sort = { column, down: this.sort.column === column && !this.sort.down };
        this.page = 0;
        this.draw();
    }

    orderChosen() {
        const [column, way] = this.order.value.split(" ");

        this.sort = { column, down: way === "down" };
        this.page = 0;
        this.draw();
    }

    set(rows) {
        this.rows = rows;
        this.draw();
    }

    chosen() {
        const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
        const test = this.o.choices[this.choice.selectedIndex]?.test ?? (() => true);
        const column = this.o.columns.find(c => c.id === this.sort.column);
        const text = row => this.o.columns.map(c => c.get?.(row) ?? "").join(" ").toLowerCase();

        return this.rows.filter(test)
            .filter(row => !words.length || words.every(w => text(row).includes(w)))
            .map(row => ({ row, value: column.get(row) }))
            .sort((a, b) => (this.sort.down ? -1 : 1) * compare(a.value, b.value))
            .map(x => x.row);
    }

    draw() {
        const rows = this.chosen();
        const pages = Math.max(1, Math.ceil(rows.length / this.o.rows));

        this.page = Math.max(0, Math.min(this.page, pages - 1));
        const first = this.page * this.o.rows;

        this.drawTools(rows.length);
        this.drawHeads();
        this.drawRows(rows.slice(first, first + this.o.rows));
        this.drawPager(rows.length, first, pages);
    }

    // A few rows need no filter.
    drawTools(count) {
        this.tools.hidden = Boolean(this.o.plain) ||
            (this.rows.length <= FEW && count === this.rows.length && !this.search.value &&
             !this.tools.contains(document.activeElement));
    }

    drawHeads() {
        this.o.columns.forEach((c, i) => {
            const own = c.id === this.sort.column;

            if (own)
                this.heads[i].setAttribute("aria-sort",
                    this.sort.down ? "descending" : "ascending");
            else
                this.heads[i].removeAttribute("aria-sort");
        });
        this.order.value = `${this.sort.column} ${this.sort.down ? "down" : "up"}`;
    }

    drawPager(count, first, pages) {
        const last = Math.min(first + this.o.rows, count);
        const focused = document.activeElement;

        setText(this.range, !count ? "" : pages > 1 ?
            `${number(first + 1)} to ${number(last)} of ${number(count)}` :
            count < this.rows.length ? `${number(count)} of ${number(this.rows.length)}` :
                `${number(count)} in all`);
        this.back.hidden = this.on.hidden = pages < 2;
        this.back.disabled = !this.page;
        this.on.disabled = this.page >= pages - 1;
        if ((focused === this.back && this.back.disabled) ||
            (focused === this.on && this.on.disabled))
            (this.back.disabled ? this.on : this.back).focus();
        this.older.hidden = !this.o.older?.more();
        if (focused === this.older && this.older.hidden)
            (pages < 2 ? this.heads[0].firstChild : this.on.disabled ? this.back : this.on).focus();
        this.wide.hidden = !count;
        this.none.hidden = count > 0;
        setText(this.none, this.rows.length ? "The filter leaves no rows." : this.o.empty);
    }

    drawRows(rows) {
        const ids = new Set(rows.map(r => String(this.o.id(r))));

        for (const [id, drawn] of this.drawn)
            if (!ids.has(id)) {
                drawn.row.remove();
                this.drawn.delete(id);
            }
        rows.forEach((row, i) => {
            const drawn = this.rowOf(String(this.o.id(row)));

            this.o.columns.forEach((c, j) => drawCell(drawn, j, c.cell ? c.cell(row) :
                String(c.get(row) ?? "")));
            if (this.body.children[i] !== drawn.row)
                this.body.insertBefore(drawn.row, this.body.children[i] ?? null);
        });
    }

    rowOf(id) {
        let drawn = this.drawn.get(id);

        if (!drawn) {
            const cells = this.o.columns.map((c, i) => el(i ? "td" : "th", {
                scope: i ? null : "row", role: i ? "cell" : "rowheader", class: c.kind,
                "data-label": c.label,
            }));

            drawn = { row: el("tr", { role: "row", "data-id": id }, cells), cells, keys: [] };
            this.drawn.set(id, drawn);
        }
        return drawn;
    }
}

// Draw a cell anew if its key changed; a button of it that has the focus keeps it.
function drawCell(drawn, i, what) {
    const key = typeof what === "string" ? what : what.key;

    if (drawn.keys[i] === key)
        return;
    const cell = drawn.cells[i];
    const focused = cell.contains(document.activeElement) ?
        document.activeElement.getAttribute("data-action") : null;

    drawn.keys[i] = key;
    cell.replaceChildren(...(typeof what === "string" ? [what] : [what.make()].flat(Infinity)));
    if (focused !== null)
        [...cell.querySelectorAll("[data-action]")]
            .find(b => b.getAttribute("data-action") === focused)?.focus();
}
