// SPDX-License-Identifier: GPL-2.0-only
// The page of mgpu-poold: login, the current view, and keeping it live.

import { announce, byId, date, setText } from "./dom.js";
import { closeAll, makeActions } from "./dialogs.js";
import { Model, Refresh } from "./model.js";
import { ServiceError, Stream, setToken, token } from "./service.js";
import { DAY, makeViews } from "./views.js";

const TICK_MS = 5000;       // times that pass are drawn anew
const USE_MS = 15000;       // use is loaded anew
const SLOW_MS = 5000;       // lists that are long, or seldom change

const pool = { model: null, views: [], act: null, stream: null, seconds: DAY, timers: [] };

// ---- drawing ----

function current() {
    const id = location.hash.slice(1) || "overview";
    const usable = pool.views.filter(v => v.id !== "admin" || pool.model.isAdmin());

    return usable.find(v => v.id === id) ?? pool.views[0];
}

let due = false;

/** Draw the current view at the next frame of the screen. */
function draw() {
    if (due)
        return;
    due = true;
    requestAnimationFrame(() => {
        due = false;
        if (!pool.views.length || token() === null)
            return;
        const begin = performance.now();

        current().view.draw();
        document.documentElement.dataset.drawMs = (performance.now() - begin).toFixed(1);
    });
}

function showView(focus) {
    const shown = current();

    for (const view of pool.views)
        view.node.hidden = view !== shown;
    for (const link of byId("nav").querySelectorAll("a")) {
        if (link.getAttribute("href") === `#${shown.id}`)
            link.setAttribute("aria-current", "page");
        else
            link.removeAttribute("aria-current");
    }
    document.title = `${shown.title} – GPU pool`;
    if (focus) {
        shown.heading.focus();
        scrollTo(0, 0);
    }
    draw();
}

function drawFrame() {
    const { you } = pool.model;

    setText(byId("who"), `${you.name}, ${you.role}${you.project ? ` of ${you.project}` : ""}`);
    byId("ask").hidden = !pool.model.mayAsk();
    byId("nav-admin").hidden = !pool.model.isAdmin();
    byId("logout").hidden = false;
    byId("nav").hidden = false;
}

function setLink(state, text) {
    byId("link").className = `link ${state}`;
    setText(byId("link"), text);
}

// ---- keeping it live ----

// Load something; without a token that is valid, the session ends.
async function attempt(load) {
    try {
        await load();
        draw();
    } catch (error) {
        if (error instanceof ServiceError && error.status === 401)
            end(error.message);
        else if (!(error instanceof ServiceError))
            throw error;
        else if (pool.stream)   // too many calls, or busy
            setTimeout(() => pool.stream && changed(), SLOW_MS);
    }
}

const fast = new Refresh(() => attempt(() => pool.model.loadRequests()));
const slow = new Refresh(() => attempt(() => Promise.all([
    pool.model.loadStatus(), pool.model.loadVms(), pool.model.loadClosed(),
    pool.model.loadHistory(), pool.model.loadTokens(), pool.model.loadUse(pool.seconds),
])), SLOW_MS);
const use = new Refresh(() => attempt(() => pool.model.loadUse(pool.seconds)));

function changed() {
    fast.soon();
    slow.soon();
}

function onEvent(event) {
    const object = event.request ? `Request ${event.request}` : event.object || "The service";

    pool.model.addEvents([event]);
    announce(`${object}: ${event.what}. ${event.text}`);
    changed();
    draw();
}

function onUp() {
    const again = !byId("lost").hidden;

    byId("lost").hidden = true;
    setLink("live", "Live");
    if (again) {
        announce("The connection is back.");
        changed();
    }
}

function onDown(error, seconds) {
    if (error instanceof ServiceError && error.status === 401) {
        end(error.message);
        return;
    }
    setLink("gone", "Connection lost");
    if (byId("lost").hidden) {
        setText(byId("lost-text"), "Connection lost. The figures below are of " +
            `${date(pool.model.at / 1000)}. The page tries again by itself.`);
        byId("lost").hidden = false;
    }
    byId("retry").title = `The next attempt is in ${seconds} s.`;
}

function every(ms, fn) {
    pool.timers.push(setInterval(() => {
        if (!document.hidden)
            fn();
    }, ms));
}

// ---- the session ----

function end(text = "") {
    pool.stream?.end();
    pool.stream = null;
    pool.timers.forEach(clearInterval);
    pool.timers = [];
    [fast, slow, use].forEach(r => r.stop());
    setToken(null);
    closeAll();
    pool.views.forEach(v => v.node.remove());
    pool.views = [];
    pool.model = null;
    for (const id of ["nav", "ask", "logout", "lost"])
        byId(id).hidden = true;
    setText(byId("who"), "");
    setLink("", "");
    showLogin(text);
}

function showLogin(text) {
    document.title = "Sign in – GPU pool";
    byId("login").hidden = false;
    byId("login-text").textContent = text;
    byId("token").value = "";
    byId("token").focus();
}

/** Load all with the token that is set, then show it. */
async function begin() {
    const model = new Model();

    setLink("", "Connecting");
    await model.loadAll(pool.seconds);
    pool.model = model;
    pool.act = makeActions(model, {
        changed,
        draw,
        range: seconds => {
            pool.seconds = Math.max(DAY, seconds);  // the overview shows a day
            draw();
            use.soon();
        },
    });
    pool.views = makeViews(model, pool.act);
    byId("content").append(...pool.views.map(v => v.node));
    byId("login").hidden = true;
    byId("login-text").textContent = "";
    byId("token").value = "";
    drawFrame();
    showView(true);
    pool.stream = new Stream({ event: onEvent, up: onUp, down: onDown }, model.after);
    every(TICK_MS, draw);
    every(USE_MS, () => use.soon());
}

async function login(event) {
    event?.preventDefault();
    const given = event ? byId("token").value.trim() : token();

    byId("login-button").disabled = true;
    setToken(given);
    try {
        await begin();
    } catch (error) {
        setToken(null);
        setLink("", "");
        showLogin(error instanceof ServiceError && error.status === 401 ?
            "The service does not know this token. Check it, or ask an administrator for another." :
            error.message);
    } finally {
        byId("login-button").disabled = false;
    }
}

byId("login-form").addEventListener("submit", login);
byId("logout").addEventListener("click", () => end());
byId("ask").addEventListener("click", () => pool.act.ask());
byId("retry").addEventListener("click", () => pool.stream?.now());
byId("skip").addEventListener("click", event => {
    event.preventDefault();
    byId("content").focus();
});
addEventListener("hashchange", () => pool.views.length && showView(true));
addEventListener("online", () => pool.stream?.now());

if (token() === null)
    showLogin("");
else
    login();
