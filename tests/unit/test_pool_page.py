#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 600
"""The page of mgpu-poold in a real browser: Chromium without a screen.

The service is the real one, with libvirt's test driver, TLS and SQLite (tests/lib/poold.py).

    test_pool_page.py [--pictures FOLDER]

With --pictures it makes the pictures of the documentation instead of testing.
"""

import base64
import json
import os
import re
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
sys.dont_write_bytecode = True

import browser  # noqa: E402 pylint: disable=wrong-import-position
import pool_scene  # noqa: E402 pylint: disable=wrong-import-position
import poold  # noqa: E402 pylint: disable=wrong-import-position
import pytap  # noqa: E402 pylint: disable=wrong-import-position

PAGE = os.path.join(TOP, "ctl", "pool", "page")
WAIT_S = 60    # for what the page shows in the end; nothing measures it
VIEWS = ("overview", "gpus", "requests", "vms", "use", "history", "events", "admin")
SHARED = []     # the browser
SCENES = pool_scene.Scenes()
TAB, ENTER, ESCAPE, SPACE, SHIFT = "\ue004", "\ue007", "\ue00c", " ", "\ue008"
ADMIN, VISION, VIEWER = "admin-token", "vision-token", "viewer-token"


def shared_browser():
    """Start the browser of all tests, once."""
    why = browser.missing()
    if why:
        raise pytap.Skip(why)
    if not SHARED:
        SHARED.append(browser.Browser())
    return SHARED[0]


class Page:
    """A page of a service, with a fresh session, until the end of a with statement."""

    def __init__(self, scene=pool_scene.make_small, width=1280, height=900, dark=False,
                 token=None, broken=None):
        self.scene, self.token, self.broken = scene, token, broken
        self.browser = shared_browser()
        self.browser.size(width, height, dark)
        self.driver = self.browser.driver
        self.pool = self.wire = None

    def __enter__(self):
        if not os.path.exists(poold.PROGRAM):
            raise pytap.Skip(f"{poold.PROGRAM} is not built")
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def begin(self):
        self.pool = SCENES.pool(self.scene, self.broken)
        self.pool.start()
        self.wire = pool_scene.Wire(self.pool.port())
        self.driver.get(f"https://127.0.0.1:{self.wire.listener.getsockname()[1]}/")
        self.log()
        if self.token:
            self.login(self.token)

    def end(self):
        self.driver.get("about:blank")
        if self.wire:
            self.wire.close()
        return self.pool.stop() if self.pool else None

    def __exit__(self, *_):
        status = self.end()
        assert status == 0 and "Sanitizer" not in self.pool.log(), self.pool.log()

    def get(self, path):
        """Ask the service itself."""
        return self.pool.unix.get(path)

    def id_of(self, vm):
        """Number of a VM's open request."""
        return next(r["id"] for r in self.get("/v1/requests?open=1&limit=1000")["requests"]
                    if r["vm"] == vm)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def log(self):
        """Messages of the console since the last call."""
        return [f"{m['source']}: {m['message']}" for m in self.driver.get_log("browser")
                if "favicon" not in m["message"]]

    def wait(self, code, what, *arguments):
        """Wait until code is true."""
        for _ in range(WAIT_S * 20):
            value = self.js(code, *arguments)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"never: {what}; the page has: {self.text()[:3000]}")

    def text(self):
        """Text that people see."""
        return self.js("return document.body.innerText")

    def wait_text(self, text):
        self.wait("return document.body.innerText.includes(arguments[0])", f"text '{text}'", text)

    def keys(self, *keys):
        """Press keys as a person does: they go to whatever has the focus."""
        for key in keys:
            self.browser.press(key)

    def active(self):
        return self.js("const a = document.activeElement; return a.getAttribute('aria-label') || "
                       "a.labels?.[0]?.textContent || a.textContent.trim()")

    def tab_to(self, name, key=TAB):
        """Press Tab until the control with a name has the focus."""
        for _ in range(300):
            if re.fullmatch(name, self.active() or ""):
                return
            self.keys(key)
        raise AssertionError(f"Tab does not reach '{name}'")

    def login(self, token=ADMIN):
        self.wait("return document.activeElement.id === 'token'", "the login form")
        self.keys(token + ENTER)
        self.wait("return !document.getElementById('nav').hidden", "the views")
        self.wait_text("Live")

    def view(self, name):
        """Go to a view, and wait until it is drawn."""
        self.js("delete document.documentElement.dataset.drawMs; location.hash = arguments[0]; "
                "if (location.hash.slice(1) === arguments[0]) dispatchEvent("
                "new HashChangeEvent('hashchange'))", name)
        self.wait("return document.documentElement.dataset.drawMs && "
                  "!document.getElementById('view-' + arguments[0]).hidden", f"view {name}", name)

    def click(self, name):
        """Click a control by its accessible name."""
        self.wait("""const found = [...document.querySelectorAll("button, a, summary")].find(
            b => b.getClientRects().length && arguments[0] ===
            (b.getAttribute("aria-label") || b.textContent.trim()));
            found?.click(); return found""", f"control '{name}'", name)

    def close_dialogs(self):
        self.js("document.querySelectorAll('dialog').forEach(d => d.close())")
        self.wait("return !document.querySelector('dialog')", "the end of the dialog")


# ---- signing in, and roles ----

def wrong_token():
    with Page() as page:
        page.wait("return document.activeElement.id === 'token'", "the login form")
        page.keys("not-a-token" + ENTER)
        page.wait_text("does not know this token")
        assert page.js("return document.activeElement.id") == "token"
        assert page.js("return document.getElementById('nav').hidden")
        assert page.js("return sessionStorage.length") == 0
        assert "vision-1" not in page.js("return document.documentElement.outerHTML")
        page.keys(ADMIN + ENTER)
        page.wait_text("vision-1")


def token_kept():
    with Page(token=ADMIN) as page:
        assert page.js("return localStorage.length") == 0
        assert page.js("return document.cookie") == ""
        assert ADMIN not in page.driver.current_url
        assert ADMIN not in page.js("return document.documentElement.outerHTML")
        assert page.js("return document.getElementById('token').value") == ""
        page.driver.refresh()
        page.wait_text("Live")
        page.click("Sign out")
        assert page.js("return sessionStorage.length") == 0
        assert "vision-1" not in page.js("return document.documentElement.outerHTML")


def revoked_token():
    with Page(token=VIEWER) as page:
        assert page.pool.unix.call("DELETE", "/v1/tokens/wilma").status == 204
        page.pool.unix.ask("after", "vision-1", "training")
        page.wait("return document.activeElement.id === 'token' && "
                  "document.getElementById('login-text').textContent", "the login form")
        assert page.js("return document.getElementById('nav').hidden")
        assert page.js("return sessionStorage.length") == 0
        assert "vision-1" not in page.js("return document.documentElement.outerHTML")


def all_of(page, views):
    """What the document has in each view, whether it is shown or not."""
    html = ""
    for view in views:
        page.view(view)
        html += page.js("return document.body.outerHTML")
    return html


def project_role():
    with Page(token=VISION) as page:
        html = all_of(page, VIEWS[:-1])
        assert "vision-1" in html
        for other in ("speech-1", "design-1", "speech-4"):
            assert other not in html, other
        assert "another project" in html
        assert page.js("return document.getElementById('nav-admin').hidden")
        page.view("requests")
        assert "Release request" in page.js("return document.body.outerHTML")
        page.view("gpus")
        assert "Take offline" not in page.text()
        page.view("vms")
        assert "New key" not in page.text() and "Pin" not in page.text().split("Pinned")[1]
        page.js("location.hash = 'admin'")
        page.wait("return !document.getElementById('view-overview').hidden", "the overview")
        assert page.js("return document.getElementById('view-admin').hidden")


def viewer_role():
    with Page(token=VIEWER) as page:
        html = all_of(page, VIEWS[:-1])
        assert "vision-1" in html and "speech-1" in html
        assert page.js("return document.getElementById('ask').hidden")
        for action in ("Cancel request", "Release request", "Extend request", "Request a GPU for",
                       "Take offline", "New key"):
            assert action not in html, action


# ---- what people do ----

def by_keyboard():
    """A request that waits until another is released; no mouse, no script."""
    with Page(token=ADMIN) as page:
        page.tab_to("Request a GPU")
        page.keys(ENTER)
        page.wait("return document.querySelector('dialog')", "the dialog")
        assert page.active() == "VM"
        page.keys("design-4")
        page.tab_to("Kind of work")
        page.keys("rendering-2")
        page.tab_to("Give")
        page.keys("a whole GPU")
        page.tab_to("GPU memory, GiB")
        page.keys("30")
        page.tab_to("compute")
        page.keys(SPACE)
        page.tab_to("Request")
        page.keys(ENTER)
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        assert page.active() == "Request a GPU"
        new = page.id_of("design-4")
        wish = page.get(f"/v1/requests/{new}")
        assert (wish["vm"], wish["kind"], wish["target"]) == ("design-4", "rendering-2", "whole")
        assert wish["memory_mib"] == 30720 and wish["capabilities"] == ["compute"]
        assert wish["state"] == "queued" and 1 <= wish["place"] <= 4
        page.tab_to("Requests")
        page.keys(ENTER)
        assert page.active() == "Requests"      # the heading
        page.wait_text("rendering-2")
        for vm in ("vision-5", "vision-6", "speech-5"):     # those before it
            page.tab_to(f"Cancel request .* of {vm}")
            page.keys(ENTER)
            page.wait("return document.querySelector('dialog')", "the question")
            assert page.active() == "Cancel"
            page.keys(ENTER)
            page.wait("return !document.querySelector('dialog')", "the end of the question")
        former = page.id_of("vision-3")
        page.tab_to("Release request .* of vision-3")
        page.keys(ENTER)
        page.wait("return document.querySelector('dialog')", "the question")
        page.keys(SPACE)        # the work ended with success
        page.tab_to("Release")
        page.keys(ENTER)
        state = "return [...document.querySelectorAll('#view-requests tr')].find(" \
                f"r => r.dataset.id === '{new}')?.querySelector('.badge')?.textContent === " \
                "arguments[0]"
        page.wait(state, "the GPU of the request", "active")
        page.tab_to("Release request .* of design-4")
        page.keys(ENTER)
        page.wait("return document.querySelector('dialog')", "the question")
        page.tab_to("Release")
        page.keys(ENTER)
        page.wait(state, "the end of the request", "released")
        assert page.get(f"/v1/requests/{new}")["state"] == "released"
        done = {h["request"]: h["done"] for h in page.get("/v1/history")["history"]}
        assert done[former] and not done[new]
        assert not page.log()


def refused_request():
    """The service's text is shown, and a second attempt is the same request."""
    with Page(token=VISION) as page:
        page.js("window.asked = []; const real = fetch; window.fetch = (path, options) => {"
                "if (options.body) window.asked.push(JSON.parse(options.body));"
                "return real(path, options); }")
        page.click("Request a GPU")
        page.keys("speech-1")
        page.tab_to("Kind of work")
        page.keys("training" + ENTER)
        page.wait("return document.querySelector('dialog [role=alert]').textContent",
                  "the refusal")
        page.tab_to("VM")
        page.js("document.activeElement.value = ''")
        page.keys("vision-6" + ENTER)
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        refused, taken = page.js("return window.asked")
        assert refused["vm"] == "speech-1" and taken["vm"] == "vision-6"
        assert refused["key"] == taken["key"] and len(taken["key"]) > 20
        page.log()      # has the refusal


def extends():
    with Page(token=ADMIN) as page:
        page.view("requests")
        number = page.id_of("vision-1")
        page.click(f"Extend request {number} of vision-1")
        page.js("document.querySelector('dialog input').value = 3")
        page.click("Extend")
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        page.wait_text("lease until")
        until = page.get(f"/v1/requests/{number}")["until"]
        assert 2 * 3600 < until - page.get("/v1/status")["now"] <= 3 * 3600


def administration():
    with Page(token=ADMIN) as page:
        page.view("admin")
        page.click("New token")
        page.keys("robot")
        page.tab_to("Role")
        page.keys("project")
        page.tab_to("Project")
        page.keys("speech")
        page.tab_to("Make")
        page.keys(ENTER)
        page.wait_text("Copy the token now")
        secret = page.js("return document.querySelector('dialog input').value")
        token = page.get("/v1/tokens/robot")
        assert (token["role"], token["project"]) == ("project", "speech")
        assert len(secret) > 40
        page.keys(ESCAPE)
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        assert secret not in page.js("return document.documentElement.outerHTML")
        page.click("Revoke token robot")
        page.click("Revoke")
        page.wait("return !document.querySelector('[data-id=robot]')", "the end of the token")
        assert page.pool.unix.call("GET", "/v1/tokens/robot").status == 404


def vms_and_gpus():
    with Page(token=ADMIN) as page:
        page.view("vms")
        page.click("Make a new agent key for vision-1")
        page.click("Make a new key")
        page.wait_text("/etc/mgpu/agent.key")
        key = page.js("return document.querySelector('dialog input').value")
        assert re.fullmatch("[0-9a-f]{64}", key)
        page.close_dialogs()
        assert key not in page.js("return document.documentElement.outerHTML")
        page.click("Pin vision-1")
        page.wait("return [...document.querySelectorAll('button')].some("
                  "b => b.getAttribute('aria-label') === 'Unpin vision-1')", "the pin")
        assert next(v for v in page.get("/v1/vms")["vms"] if v["name"] == "vision-1")["pinned"]
        page.view("gpus")
        page.click("Take offline: node1/0000:41:00.0")
        page.keys("smells of smoke" + ENTER)
        page.wait_text("smells of smoke")
        page.click("Put online: node1/0000:c3:00.0")
        page.click("Put online")
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        offline = [g["name"] for g in page.get("/v1/gpus")["gpus"] if g["offline"]]
        assert offline == ["node1/0000:41:00.0"]


# ---- live ----

def live():
    with Page(token=ADMIN) as page:
        page.js("window.mark = 1")
        page.view("events")
        number = page.pool.unix.ask("live", "design-5", "something-new").json["id"]
        page.wait_text("something-new")
        page.wait("return document.getElementById('live').textContent", "the announcement")
        page.view("gpus")
        row = "return [...document.querySelectorAll('#view-gpus tr')].some(" \
              "r => r.innerText.includes('design-5'))"
        page.wait(row, "the GPU of the request")
        page.pool.unix.release(number)
        page.wait(row.replace("return ", "return !"), "the release")
        assert page.js("return window.mark") == 1
        assert not page.log()


def focus_kept():
    """The control that a person is at stays while the rows around it change."""
    with Page(token=ADMIN) as page:
        page.view("requests")
        page.tab_to("Release request .* of vision-2")
        page.pool.unix.release(page.id_of("vision-1"))
        page.pool.unix.call("POST", f"/v1/requests/{page.id_of('vision-2')}/extend",
                            {"seconds": 7200})
        page.wait_text("lease until")
        page.wait_text("released by admin")
        assert page.active().endswith("of vision-2"), page.active()


def connection_lost():
    with Page(token=ADMIN) as page:
        page.js("window.mark = 1")
        page.wire.cut()
        page.wait_text("Connection lost. The figures below are of")
        assert page.js("return document.getElementById('lost').getAttribute('role')") == "alert"
        assert page.js("return document.getElementById('link').textContent") == "Connection lost"
        assert "vision-1" in page.text()    # the last figures stay
        page.view("events")
        page.pool.unix.ask("missed", "design-6", "missed-work")
        assert page.js("return document.getElementById('retry').getClientRects().length")
        page.wire.mend()
        # The page may have connected by itself meanwhile, and hidden the button.
        page.js("document.getElementById('retry').click()")
        page.wait("return document.getElementById('lost').hidden", "the connection")
        page.wait_text("missed-work")
        assert page.js("return window.mark") == 1
        assert page.js("return document.getElementById('link').textContent") == "Live"
        page.log()      # has the failed attempts


# ---- hostile texts ----

HOSTILE = '"\'><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>' \
          "<svg onload=window.hacked=1>javascript:window.hacked=1"


# Put the attempt before each text that the service answers, but for words of its own.
HOSTILE_SERVICE = """
const hostile = arguments0;
const own = ["role", "state", "target", "precision", "capabilities", "precisions"];
const spoil = (value, name) => (own.includes(name) ? value : typeof value === "string" ?
	hostile + value : Array.isArray(value) ? value.map(v => spoil(v, name)) :
	value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(
		([n, v]) => [n, spoil(v, n)])) : value);
const real = window.fetch;
const quoted = JSON.stringify(hostile).slice(1, -1);
const change = new TransformStream({ transform: (text, out) => out.enqueue(
	text.replace(/"(actor|what|object|text)":"/g, m => m + quoted)) });
window.fetch = async (path, options) => {
	const answer = await real(path, options);
	const type = answer.headers.get("Content-Type") ?? "";

	if (type.startsWith("application/json"))
		return new Response(JSON.stringify(spoil(await answer.json())), answer);
	if (type.startsWith("text/event-stream"))
		return new Response(answer.body.pipeThrough(new TextDecoderStream())
			.pipeThrough(change).pipeThrough(new TextEncoderStream()), answer);
	return answer;
};
"""


def hostile_texts():
    page = Page()
    script = page.browser.command("Page.addScriptToEvaluateOnNewDocument", source="{" +
                                  HOSTILE_SERVICE.replace("arguments0", json.dumps(HOSTILE)) + "}")
    try:
        with page:
            page.login()
            hostile_views(page)
    finally:
        page.browser.command("Page.removeScriptToEvaluateOnNewDocument", **script)


def hostile_views(page):
    page.js("window.scripts = document.scripts.length")
    for view in VIEWS:
        page.view(view)
        assert HOSTILE in page.js("return document.body.textContent"), view
    for view, control, text in (
            ("requests", f"Request {page.id_of('vision-1')}", "Client's key"),
            ("gpus", f"GPU {HOSTILE}node1/0000:41:00.0", "IOMMU group"),
            ("vms", f"VM {HOSTILE}vision-1", "Forget this VM"),
            ("vms", f"Request a GPU for {HOSTILE}vision-1", "Kind of work"),
            ("vms", f"Set the project of {HOSTILE}vision-1", "Project of")):
        page.view(view)
        page.click(control)
        page.wait_text(text)
        page.close_dialogs()
    page.view("events")
    page.pool.unix.ask("hostile", "design-5", "hostile-work")
    page.wait("return document.getElementById('live').textContent.includes('<script>')",
              "the announcement")
    assert page.js("return window.hacked === undefined")
    assert page.js("return document.querySelectorAll('img, iframe, object').length") == 0
    assert page.js("return document.scripts.length === window.scripts")
    assert page.js("return [...document.querySelectorAll('*')].every(n => "
                   "[...n.attributes].every(a => !/^on|^style$/.test(a.name)))")
    assert not page.log()


def policy():
    with Page() as page:
        page.login()
        headers = page.driver.execute_async_script("""
            const done = arguments[0];
            fetch("/").then(a => done(Object.fromEntries(a.headers)));""")
        sources = headers["content-security-policy"].split("; ")
        assert "default-src 'none'" in sources and "script-src 'self'" in sources
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        for view in VIEWS:
            page.view(view)
        page.click("Request a GPU")
        page.close_dialogs()
        assert not page.log()
        blocked = page.driver.execute_async_script("""
            const done = arguments[0];
            addEventListener("securitypolicyviolation", e => done(e.effectiveDirective));
            document.body.append(Object.assign(document.createElement("script"),
                { textContent: "window.hacked = 1" }));""")
        assert blocked.startswith("script-src")
        page.log()


def sources():
    """No way from a text to markup or code, and nothing from elsewhere."""
    for name in sorted(os.listdir(PAGE)):
        with open(os.path.join(PAGE, name), encoding="utf-8") as f:
            text = f.read()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|"
                             r"new Function|DOMParser|localStorage|document\.cookie", text), name
        assert not re.search(r"\bstyle=|\bon[a-z]+=", text), name
        for url in re.findall(r"https?://[^\s\"']+", text):
            assert url == "http://www.w3.org/2000/svg", f"{name}: {url}"


# ---- narrow screens ----

def narrow():
    with Page(pool_scene.make_long, width=320, height=640, token=ADMIN) as page:
        for view in VIEWS:
            page.view(view)
            wide = page.js("""return [...document.querySelectorAll("body *")].filter(n =>
                n.getBoundingClientRect().right > 321 && !n.closest(".hidden, .skip, .toasts"))
                .map(n => n.outerHTML.slice(0, 200)).slice(0, 3)""")
            assert page.js("return document.documentElement.scrollWidth") <= 320, (view, wide)
            assert not wide, (view, wide)
        page.view("requests")
        last = page.id_of("v" * 63)
        for control in ("Request a GPU", f"Request {last}",
                        f"Release request {last} of " + "v" * 63,
                        "GPU " + "a" * 50 + "/0000:41:00.0"):
            page.click(control)
            page.wait("return document.querySelector('dialog')", "the dialog")
            assert page.js("const d = document.querySelector('dialog'); "
                           "return d.scrollWidth <= d.clientWidth && "
                           "d.getBoundingClientRect().right <= 320"), control
            page.close_dialogs()


# ---- rules of accessibility ----

RULES = """
const seen = n => n.getClientRects().length && getComputedStyle(n).visibility !== "hidden";
const name = n => (n.getAttribute("aria-label") || (n.getAttribute("aria-labelledby") || "")
	.split(" ").map(i => document.getElementById(i)?.textContent ?? "").join(" ").trim() ||
	[...(n.labels ?? [])].map(l => l.textContent).join(" ").trim() || n.textContent.trim());
const faults = [];
const root = document.querySelector("dialog[open]") ?? document.body;
const all = [...root.querySelectorAll("*")].filter(seen);
const say = (rule, n) => faults.push(`${rule}: ${n.outerHTML.slice(0, 160)}`);

const named = "button, a, input, select, summary, dialog, nav, section";
for (const n of all.filter(n => n.matches(named)))
	if (!name(n) || (n.matches("input, select") && name(n) === n.textContent.trim() &&
			 !n.labels?.length && !n.getAttribute("aria-label")))
		say("no name", n);
const ids = [...document.querySelectorAll("[id]")].map(n => n.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => faults.push(`id twice: ${id}`));
for (const n of document.querySelectorAll("[aria-labelledby], [aria-describedby], label[for]"))
	for (const id of `${n.getAttribute("aria-labelledby") ?? ""} ${
		n.getAttribute("aria-describedby") ?? ""} ${n.getAttribute("for") ?? ""}`
		.split(" ").filter(Boolean))
		if (!document.getElementById(id))
			say(`no element ${id}`, n);
let level = root === document.body ? 0 : 1;
for (const h of all.filter(n => /^H[1-6]$/.test(n.tagName))) {
	if (Number(h.tagName[1]) > level + 1)
		say("heading skips a level", h);
	level = Number(h.tagName[1]);
}
for (const t of all.filter(n => n.tagName === "TABLE")) {
	if (!t.caption?.textContent)
		say("table without caption", t);
	for (const th of t.querySelectorAll("th"))
		if (!th.scope)
			say("header without scope", th);
	for (const tr of t.tBodies[0].rows)
		if (!tr.querySelector("th[scope=row]"))
			say("row without header", tr);
}
for (const n of all.filter(n => n.tagName === "svg"))
	if (n.getAttribute("aria-hidden") !== "true" && (n.getAttribute("role") !== "img" ||
	    !n.querySelector("title")?.textContent))
		say("picture without name", n);
for (const n of all)
	if (n.tabIndex > 0)
		say("tabindex above 0", n);
if (root === document.body) {
	for (const what of ["header", "nav", "main", "h1"])
		if (document.querySelectorAll(what === "nav" ? "#nav" : what).length !== 1)
			faults.push(`not one ${what}`);
	if (document.getElementById("live").getAttribute("aria-live") !== "polite")
		faults.push("no live region");
	if (!document.documentElement.lang || !document.title)
		faults.push("no language or title");
}
return faults;
"""

CONTRAST = """
const rgb = text => {
	const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
	return { r, g, b, a };
};
const over = (top, bottom) => ({
	r: top.r * top.a + bottom.r * (1 - top.a), g: top.g * top.a + bottom.g * (1 - top.a),
	b: top.b * top.a + bottom.b * (1 - top.a), a: 1 });
const light = c => [c.r, c.g, c.b].map(v => v / 255).map(v => (v <= 0.03928 ? v / 12.92 :
	((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) /
	(Math.min(light(a), light(b)) + 0.05);
const ground = n => {
	const layers = [];

	for (let at = n; at; at = at.parentElement)
		layers.push(rgb(getComputedStyle(at).backgroundColor));
	return layers.reverse().reduce((under, c) => over(c, under), { r: 255, g: 255, b: 255, a: 1 });
};
const faults = [];
let lowest = 99;
const root = document.querySelector("dialog[open]") ?? document.body;
for (const n of [...root.querySelectorAll("*")]) {
	const own = [...n.childNodes].some(c => c.nodeType === 3 && c.data.trim());
	const input = n.matches("input, select");

	if ((!own && !input) || !n.getClientRects().length || n.closest(".hidden, .skip"))
		continue;
	const style = getComputedStyle(n);
	const colour = n.closest("svg") ? style.fill : style.color;
	const c = ratio(over(rgb(colour), ground(n)), ground(n));

	lowest = Math.min(lowest, c);
	if (c < 4.5)
		faults.push(`${c.toFixed(2)}: ${n.outerHTML.slice(0, 160)}`);
	if (input && ratio(rgb(style.borderTopColor), ground(n)) < 3)
		faults.push(`edge: ${n.outerHTML.slice(0, 160)}`);
}
return [faults.slice(0, 5), lowest];
"""

DIALOGS = (("requests", "Request a GPU"), ("requests", "Request {id}"),
           ("requests", "Release request {id} of vision-1"),
           ("requests", "Extend request {id} of vision-1"), ("gpus", "GPU node1/0000:41:00.0"),
           ("gpus", "Take offline: node1/0000:41:00.0"), ("gpus", "Describe node1/0000:41:00.0"),
           ("vms", "VM vision-1"), ("vms", "Make a new agent key for vision-1"),
           ("vms", "Set the project of vision-1"), ("admin", "New token"),
           ("admin", "New project"), ("admin", "Change project vision"))


def everywhere(page):
    """Go through the login form, all views and all dialogs; yields the name of each."""
    page.wait("return document.activeElement.id === 'token'", "the login form")
    yield "login"
    page.login()
    for view in VIEWS:
        page.view(view)
        page.js("document.querySelectorAll('section:not([hidden]) details').forEach("
                "d => { d.open = true; })")
        yield view
    for view, control in DIALOGS:
        page.view(view)
        page.click(control.format(id=page.id_of("vision-1")))
        page.wait("return document.querySelector('dialog')", "the dialog")
        page.js("document.querySelectorAll('dialog details').forEach(d => { d.open = true; })")
        yield control
        page.close_dialogs()


def accessible():
    with Page() as page:
        for where in everywhere(page):
            faults = page.js(RULES)
            assert not faults, f"{where}: {faults[:5]}"


def contrast(dark):
    with Page(dark=dark, broken="node2") as page:
        lowest = 99
        for where in everywhere(page):
            faults, low = page.js(CONTRAST)
            assert not faults, f"{where}: {faults}"
            lowest = min(lowest, low)
        print(f"# lowest contrast{' in the dark' if dark else ''}: {lowest:.2f}")
        assert lowest >= 4.5


def contrast_light():
    contrast(False)
    assert SHARED


def contrast_dark():
    contrast(True)
    assert SHARED


FOCUS = """
const a = document.activeElement;
const box = a.getBoundingClientRect();
const style = getComputedStyle(a);
const order = [...document.querySelectorAll("*")].indexOf(a);
return [order, a.outerHTML.slice(0, 120), style.outlineStyle !== "none" &&
	parseFloat(style.outlineWidth) >= 2, box.width > 0 && box.top < innerHeight && box.bottom > 0,
	a === document.body];
"""


def tab_order():
    with Page(token=ADMIN) as page:
        for view in ("overview", "requests"):
            page.view(view)
            page.js("document.activeElement.blur(); document.body.tabIndex = -1; "
                    "document.body.focus(); document.body.removeAttribute('tabindex')")
            reached, last = 0, -1
            while True:
                page.keys(TAB)
                order, html, outline, inside, body = page.js(FOCUS)
                if body or order <= last:
                    break
                assert outline, f"no visible focus: {html}"
                assert inside, f"the focus is outside the window: {html}"
                reached, last = reached + 1, order
            controls = page.js("""return [...document.querySelectorAll(
                "a[href], button, input, select, summary")].filter(n => !n.disabled &&
                n.getClientRects().length).length""")
            assert reached == controls, f"{view}: {reached} of {controls}"


def skip_link():
    with Page(token=ADMIN) as page:
        page.js("document.body.tabIndex = -1; document.body.focus(); "
                "document.body.removeAttribute('tabindex')")
        page.keys(TAB)
        assert page.active() == "Skip to the content"
        page.keys(ENTER)
        assert page.js("return document.activeElement.id") == "content"
        assert page.js("return !document.getElementById('view-overview').hidden")


def dialog_focus():
    with Page(token=ADMIN) as page:
        page.tab_to("Request a GPU")
        page.keys(ENTER)
        page.wait("return document.querySelector('dialog')", "the dialog")
        names = []
        for _ in range(40):
            page.keys(TAB)
            assert page.js("return document.querySelector('dialog').contains("
                           "document.activeElement)")
            names.append(page.active())
        assert names.count("VM") >= 2 and len(set(names)) > 10
        page.tab_to("VM")
        page.keys(SHIFT + TAB)
        assert page.active() == "Close “Request a GPU”"
        page.keys(ESCAPE)
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        assert page.active() == "Request a GPU"


def no_motion():
    with Page(token=ADMIN) as page:
        page.js("""const p = document.createElement("p"); p.className = "toast";
            document.getElementById("toasts").append(p)""")
        assert page.js("return getComputedStyle(document.querySelector('.toast'))"
                       ".animationName") == "none"
        assert page.js("return matchMedia('(prefers-reduced-motion: reduce)').matches")


# ---- plots, tables, size ----

def plots():
    """The plot, its sentence and its table have the same numbers."""
    with Page(token=ADMIN) as page:
        page.view("use")
        page.wait("return document.querySelector('#view-use figure svg path.f0')", "the plot")
        page.click("Numbers of “GPUs lent and at work”")
        page.wait("return document.querySelector('#view-use figure tbody tr')", "the table")
        rows = page.js("""return [...document.querySelectorAll(
            "#view-use figure tbody tr")].map(r => [...r.cells].slice(1).map(
            c => Number(c.textContent)))""")
        text = page.js("return document.querySelector('#view-use figure > p').textContent")
        lent, busy = (float(x) for x in re.findall(r"([\d.]+) on average", text)[:2])
        assert len(rows) == 24
        assert abs(sum(r[0] for r in rows) / 24 - lent) < 0.02
        assert abs(sum(r[1] for r in rows) / 24 - busy) < 0.02
        assert 0 < busy < lent <= 11
        title = page.js("return document.querySelector('#view-use figure title').textContent")
        assert text in title
        assert page.js("return document.querySelectorAll('#view-use .strip rect').length") > 100


def a_day_stays():
    """A shorter time in the view of use takes nothing from the overview."""
    with Page(token=ADMIN) as page:
        def lent():
            page.view("overview")
            return float(re.search(r"in VMs: .* now, ([\d.]+) on average", page.wait(
                "return document.querySelector('#view-overview figure > p').textContent",
                "the numbers")).group(1))

        before = lent()
        page.view("use")
        page.js("""performance.clearResourceTimings();
            const range = document.querySelector("#view-use .tools select");
            range.value = 3600; range.dispatchEvent(new Event("change"));""")
        page.wait("return performance.getEntriesByType('resource').some("
                  "e => e.name.includes('/v1/use?') && e.responseEnd)", "the use is loaded")
        page.driver.execute_async_script("fetch('/').then(r => r.text()).then(() => "
                                         "requestAnimationFrame(arguments[0]))")
        assert before > 1 and abs(lent() - before) < 0.1, (before, lent())


def sorts_and_filters():
    with Page(token=ADMIN) as page:
        page.view("gpus")
        column = "return [...document.querySelectorAll('#view-gpus tbody tr')].map(" \
                 "r => r.cells[3].textContent)"
        page.click("Memory")
        assert page.js(column)[0] == "16 GiB"
        page.click("Memory")
        assert page.js(column)[0] == "45 GiB"
        assert page.js("return document.querySelector('#view-gpus [aria-sort]').ariaSort") == \
            "descending"
        page.tab_to("Filter GPUs", SHIFT + TAB)
        page.keys("a5000 speech")
        page.wait("return document.querySelectorAll('#view-gpus tbody tr').length === 3",
                  "three rows")
        page.keys("nothing")
        page.wait_text("The filter leaves no rows.")


def large():
    with Page(pool_scene.make_large, token=ADMIN) as page:
        times = {}
        for view in VIEWS:
            page.view(view)
            times[view] = float(page.js("return document.documentElement.dataset.drawMs"))
            rows = page.js("return Math.max(0, ...[...document.querySelectorAll("
                           "'section:not([hidden]) tbody')].map(t => t.rows.length))")
            assert rows <= 50, view
        print("# draws 1,000 VMs and 200 GPUs in ms: " +
              ", ".join(f"{v} {t:.0f}" for v, t in times.items()))
        page.view("vms")
        page.wait_text("1 to 50 of 1,000")
        page.click("Next page")
        page.wait_text("51 to 100 of 1,000")
        assert "vm-0050" in page.text() and "vm-0049" not in page.text()
        page.tab_to("Filter VMs", SHIFT + TAB)
        page.keys("vm-0777")
        page.wait("return document.querySelectorAll('#view-vms tbody tr').length === 1", "one row")
        nodes = page.js("return document.querySelectorAll('*').length")
        print(f"# elements: {nodes}")
        assert nodes < 10000


def older():
    """Rows beyond the newest 1,000 come by a button, which stays where it is for the keyboard."""
    with Page(pool_scene.make_old, token=ADMIN) as page:
        rows = "return [...document.querySelectorAll(`#view-${arguments[0]} .pager [role=status]`)]" \
               ".pop().textContent"
        for view, name, size in (("requests", "requests that are over", 20),
                                 ("history", "history", 25), ("events", "events", 50)):
            page.view(view)
            count = page.js(rows, view)
            assert re.fullmatch(rf"1 to {size} of 1,0\d\d", count), count
            page.tab_to(f"Load older {name}")
            for more in ("2,0", "2,5"):
                page.keys(ENTER)
                page.wait(f"{rows}.includes(arguments[1])", f"{more}.. {name}", view, f"of {more}")
            # Nothing is left, and the focus is not lost.
            assert f"Load older {name}" not in page.text()
            assert page.active() in ("Next page", "Previous page"), page.active()
        # Newer rows come besides.
        page.pool.unix.ask("new", "vision-1", "training")
        page.wait_text("training on any")
        page.view("requests")
        assert page.js(rows, "requests") == "1 to 20 of 2,500"
        assert not page.log()
    # Some of the newest events are not of the project.
    with Page(pool_scene.make_old, token=VISION) as page:
        page.view("events")
        assert re.fullmatch(r"1 to 50 of 9\d\d", page.js(rows, "events")), page.js(rows, "events")
        page.click("Load older events")
        page.wait_text("1 to 50 of 1,9")


TESTS = [
    (sources, "the page makes nodes, never markup, of texts, and loads nothing from elsewhere"),
    (wrong_token, "a wrong token shows nothing of the pool and says what to do"),
    (token_kept, "the token stays in the tab's session until one signs out"),
    (revoked_token, "a token that is revoked ends the session"),
    (project_role, "a project sees and changes its own only"),
    (viewer_role, "a viewer changes nothing"),
    (by_keyboard, "a request is queued, gets its GPU and is released by keyboard alone"),
    (refused_request, "a refusal is shown and can be mended in place"),
    (extends, "a lease is extended"),
    (administration, "a token is made, shown once, and revoked"),
    (vms_and_gpus, "keys are shown once; VMs are pinned; GPUs go offline and online"),
    (live, "changes appear without a reload, and readers of the screen hear them"),
    (focus_kept, "the focus stays while rows change"),
    (connection_lost, "a lost connection is shown, and what was missed comes after it"),
    (hostile_texts, "no text of the service runs as a script or becomes markup"),
    (policy, "the policy of the page blocks inline scripts, and the page needs none"),
    (narrow, "no view or dialog is wider than a screen of 320 pixels"),
    (accessible, "controls, headings, tables and pictures have names and order"),
    (contrast_light, "texts have a contrast of 4.5 or more"),
    (contrast_dark, "and so they have in the dark"),
    (tab_order, "Tab reaches every control in order, visibly"),
    (skip_link, "a link skips to the content"),
    (dialog_focus, "a dialog keeps the focus, and Escape gives it back"),
    (no_motion, "nothing moves for people who do not want it"),
    (a_day_stays, "a shorter time of use leaves the overview its day"),
    (plots, "a plot has the same numbers as its sentence and its table"),
    (sorts_and_filters, "tables sort and filter"),
    (older, "older requests, rows of the history and events are loaded by buttons"),
    (large, "1,000 VMs and 200 GPUs are shown in pages"),
]


# ---- pictures ----

# Name, view, width, height, dark.
PICTURES = (("page", "overview", 1280, 1290, False), ("page-dark", "gpus", 1280, 830, True),
            ("page-phone", "requests", 360, 780, False))


def pictures(folder):
    """Make the pictures; pngquant makes them small."""
    for name, view, width, height, dark in PICTURES:
        with Page(width=width, height=height, dark=dark, token=ADMIN) as page:
            page.browser.command("Emulation.setScrollbarsHidden", hidden=True)
            page.view(view)
            page.js("document.activeElement.blur()")
            page.wait("return !document.querySelector('#view-overview figure') || "
                      "document.querySelector('figure svg path') || "
                      "document.getElementById('view-overview').hidden", "the plot")
            shot = page.browser.command("Page.captureScreenshot", format="png")
            path = os.path.join(folder, name + ".png")
            with open(path, "wb") as f:
                f.write(base64.b64decode(shot["data"]))
            subprocess.run(["pngquant", "--force", "--output", path, "256", path], check=True)


def main():
    try:
        if sys.argv[1:2] == ["--pictures"]:
            pictures(sys.argv[2])
            return 0
        only = sys.argv[1:]
        return pytap.run([t for t in TESTS if not only or t[0].__name__ in only])
    finally:
        for b in SHARED:
            b.close()
        SCENES.close()


if __name__ == "__main__":
    sys.exit(main())
