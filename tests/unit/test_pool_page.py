#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The page of mgpu-poold in a real browser: Chromium without a screen.

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

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
sys.dont_write_bytecode = True

import browser  # noqa: E402 pylint: disable=wrong-import-position
import played_pool  # noqa: E402 pylint: disable=wrong-import-position
import pytap  # noqa: E402 pylint: disable=wrong-import-position

WAIT_S = 60    # for what the page shows in the end; nothing measures it
VIEWS = ("overview", "gpus", "requests", "vms", "use", "history", "events", "admin")
ANSWERS = []    # of the played service, in all tests
SHARED = []     # the browser
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


def add_tokens(pool):
    pool.add_token(ADMIN, "anna", "admin")
    pool.add_token(VISION, "victor", "project", "vision")
    pool.add_token(VIEWER, "wilma", "viewer")


class Page:
    """A page of a played service, with a fresh session, until the end of a with statement."""

    def __init__(self, pool=None, width=1280, height=900, dark=False, token=None):
        self.token = token
        self.browser = shared_browser()
        self.browser.size(width, height, dark)
        self.driver = self.browser.driver
        self.pool = pool or played_pool.small_pool()
        add_tokens(self.pool)
        self.service = played_pool.Service(self.pool)

    def __enter__(self):
        self.driver.get(self.service.url)
        self.js("sessionStorage.clear()")
        self.driver.get(self.service.url)
        self.log()
        if self.token:
            self.login(self.token)
        return self

    def __exit__(self, *_):
        self.driver.get("about:blank")
        self.service.close()
        ANSWERS.extend(self.service.answers)
        self.pool.close()

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
            self.driver.switch_to.active_element.send_keys(key)

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
        del page.pool.tokens[VIEWER]
        page.pool.event("token", "admin:anna", obj="wilma", text="revoked")
        page.pool.event("request", "vm:vision-1", page.pool.requests[1], text="changed")
        page.wait_text("the token is not valid")
        assert page.js("return document.getElementById('nav').hidden")
        assert page.js("return sessionStorage.length") == 0


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
        page.keys("20")
        page.tab_to("compute")
        page.keys(SPACE)
        page.tab_to("Request")
        page.keys(ENTER)
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        assert page.active() == "Request a GPU"
        new = max(page.pool.requests)
        wish = page.pool.requests[new]
        assert (wish["vm"], wish["kind"], wish["target"]) == ("design-4", "rendering-2", "whole")
        assert wish["memory_mib"] == 20480 and wish["capabilities"] == ["compute"]
        assert wish["state"] == "queued"
        page.tab_to("Requests")
        page.keys(ENTER)
        assert page.active() == "Requests"      # the heading
        page.wait_text("rendering-2")
        assert page.js("return [...document.querySelectorAll('#view-requests tr')].find("
                       "r => r.innerText.includes('rendering-2')).innerText").startswith("4")
        for r in (92, 93, 94):      # those before it
            page.tab_to(f"Cancel request {r} .*")
            page.keys(ENTER)
            page.wait("return document.querySelector('dialog')", "the question")
            assert page.active() == "Cancel"
            page.keys(ENTER)
            page.wait("return !document.querySelector('dialog')", "the end of the question")
        page.tab_to("Release request 85 .*")
        page.keys(ENTER)
        page.wait("return document.querySelector('dialog')", "the question")
        page.keys(SPACE)        # the work ended with success
        page.tab_to("Release")
        page.keys(ENTER)
        row = "return [...document.querySelectorAll('#view-requests tr')].some(r => " \
              f"r.dataset.id === '{new}' && r.innerText.includes('active'))"
        page.wait(row, "the GPU of the request")
        page.tab_to(f"Release request {new} .*")
        page.keys(ENTER)
        page.wait("return document.querySelector('dialog')", "the question")
        page.tab_to("Release")
        page.keys(ENTER)
        page.wait(f"return [...document.querySelectorAll('#view-requests tr')].some(r => "
                  f"r.dataset.id === '{new}' && r.innerText.includes('released'))", "its end")
        assert page.pool.requests[new]["state"] == "released"
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
        page.wait_text("there is no VM 'speech-1'; define it with libvirt")
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
        page.click("Extend request 82 of vision-1")
        page.js("document.querySelector('dialog input').value = 3")
        page.click("Extend")
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        left = page.pool.requests[82]["until"] - time.time()
        assert 3 * 3600 - 600 < left <= 3 * 3600


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
        assert page.pool.tokens[secret]["name"] == "robot"
        assert page.pool.tokens[secret]["project"] == "speech"
        page.keys(ESCAPE)
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        assert secret not in page.js("return document.documentElement.outerHTML")
        page.click("Revoke token robot")
        page.click("Revoke")
        page.wait("return !document.querySelector('[data-id=robot]')", "the end of the token")
        assert secret not in page.pool.tokens


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
        assert page.pool.vms["vision-1"]["pinned"]
        page.view("gpus")
        page.click("Take offline: node1/0000:41:00.0")
        page.keys("smells of smoke" + ENTER)
        page.wait_text("smells of smoke")
        assert page.pool.gpus["node1/0000:41:00.0"]["offline"]
        page.click("Put online: node3/0000:c3:00.0")
        page.click("Put online")
        page.wait("return !document.querySelector('dialog')", "the end of the dialog")
        assert not page.pool.gpus["node3/0000:c3:00.0"]["offline"]


# ---- live ----

def live():
    with Page(token=ADMIN) as page:
        page.js("window.mark = 1")
        page.view("events")
        page.pool.event("request", "vm:vision-1", page.pool.requests[1], text="something new")
        page.wait_text("something new")
        page.wait("return document.getElementById('live').textContent.includes('something new')",
                  "the announcement")
        page.view("gpus")
        with page.pool.lock:
            page.pool.set(page.pool.requests[82], state="releasing")
            page.pool.event("release", "admin:anna", page.pool.requests[82], text="idle")
        page.wait("return [...document.querySelectorAll('#view-gpus tr')].some(r => "
                  "r.innerText.includes('releasing'))", "the state of the GPU")
        assert page.js("return window.mark") == 1
        assert not page.log()


def focus_kept():
    """The control that a person is at stays while the rows around it change."""
    with Page(token=ADMIN) as page:
        page.view("requests")
        page.tab_to("Release request 83 .*")
        with page.pool.lock:
            page.pool.set(page.pool.requests[82], why="changed in between")
            page.pool.set(page.pool.requests[83], why="changed, too")
            page.pool.event("choose", "service", page.pool.requests[82], text="changed")
        page.wait_text("changed, too")
        assert page.active().startswith("Release request 83")


def connection_lost():
    with Page(token=ADMIN) as page:
        page.js("window.mark = 1")
        port = page.service.server_port
        page.service.close()
        page.wait_text("Connection lost. The figures below are of")
        assert page.js("return document.getElementById('lost').getAttribute('role')") == "alert"
        assert page.js("return document.getElementById('link').textContent") == "Connection lost"
        assert "vision-1" in page.text()    # the last figures stay
        page.view("events")
        page.pool.event("request", "vm:vision-1", page.pool.requests[1], text="missed event")
        ANSWERS.extend(page.service.answers)
        page.service = played_pool.Service(page.pool, port)
        page.click("Try now")
        page.wait("return document.getElementById('lost').hidden", "the connection")
        page.wait_text("missed event")
        assert page.js("return window.mark") == 1
        assert page.js("return document.getElementById('link').textContent") == "Live"
        page.log()      # has the failed attempts


# ---- hostile texts ----

HOSTILE = '"\'><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>' \
          "<svg onload=window.hacked=1>javascript:window.hacked=1"


def hostile_pool():
    """A pool of which every text is an attempt to run a script."""
    pool = played_pool.small_pool()
    for r in pool.requests.values():
        r.update(why=HOSTILE, kind=HOSTILE, key=HOSTILE, type=HOSTILE, uuid=HOSTILE)
        if r["model"]:
            r["model"] = HOSTILE
    for gpu in pool.gpus.values():
        gpu.update(model=HOSTILE, why=HOSTILE, types=[HOSTILE], functions=[HOSTILE],
                   capabilities=[HOSTILE], precisions=[HOSTILE])
    for vm in list(pool.vms.values()):
        vm.update(host=HOSTILE, uuid=HOSTILE)
    pool.add_vm(HOSTILE, HOSTILE, HOSTILE)
    pool.add_project(HOSTILE)
    pool.add_gpu(HOSTILE, HOSTILE, HOSTILE)
    for host in pool.hosts.values():
        host.update(name=HOSTILE, up=False, why=HOSTILE)
    for row in pool.history:
        row.update(kind=HOSTILE, model=HOSTILE, project=HOSTILE)
    for e in pool.events:
        e.update(actor=HOSTILE, what=HOSTILE, object=HOSTILE, text=HOSTILE)
    pool.add_token("t", HOSTILE, "admin")
    return pool


def hostile_texts():
    with Page(hostile_pool()) as page:
        page.login("t")
        page.js("window.scripts = document.scripts.length")
        for view in VIEWS:
            page.view(view)
            assert HOSTILE in page.js("return document.body.textContent"), view
        page.view("requests")
        page.click("Request 82")
        page.wait_text("Client's key")
        page.close_dialogs()
        page.view("gpus")
        page.click("GPU node1/0000:41:00.0")
        page.wait_text("IOMMU group")
        page.close_dialogs()
        page.view("vms")
        page.click("VM vision-1")
        page.wait_text("Forget this VM")
        page.close_dialogs()
        page.click("Request a GPU")
        page.close_dialogs()
        page.pool.event(HOSTILE, HOSTILE, page.pool.requests[1], HOSTILE, HOSTILE)
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
        assert "unsafe" not in played_pool.page_policy()
        page.login()
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
    folder = played_pool.PAGE
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|"
                             r"new Function|DOMParser|localStorage|document\.cookie", text), name
        assert not re.search(r"\bstyle=|\bon[a-z]+=", text), name
        for url in re.findall(r"https?://[^\s\"']+", text):
            assert url == "http://www.w3.org/2000/svg", f"{name}: {url}"


# ---- narrow screens ----

def long_pool():
    pool = played_pool.small_pool()
    name = "a" * 63
    pool.add_project(name)
    pool.add_host(name, up=False, why="b" * 200)
    pool.add_vm("v" * 63, name, name)
    pool.add_gpu(name, "0000:41:00.0", "M" * 63, slots=4)
    r = pool.add_request("v" * 63, "k" * 63, "active", f"{name}/0000:41:00.0", why="w" * 400)
    pool.event("request", "vm:" + "v" * 63, r, text="t" * 400)
    return pool


def narrow():
    with Page(long_pool(), width=320, height=640) as page:
        page.login()
        for view in VIEWS:
            page.view(view)
            wide = page.js("""return [...document.querySelectorAll("body *")].filter(n =>
                n.getBoundingClientRect().right > 321 && !n.closest(".wide, .hidden, .skip"))
                .map(n => n.outerHTML.slice(0, 200)).slice(0, 3)""")
            assert page.js("return document.documentElement.scrollWidth") <= 320, (view, wide)
            assert not wide, (view, wide)
        page.view("requests")
        last = max(page.pool.requests)
        for control in ("Request a GPU", f"Request {last}",
                        f"Release request {last} of " + "v" * 63,
                        "GPU " + "a" * 63 + "/0000:41:00.0"):
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

DIALOGS = (("requests", "Request a GPU"), ("requests", "Request 82"),
           ("requests", "Release request 82 of vision-1"),
           ("requests", "Extend request 82 of vision-1"), ("gpus", "GPU node1/0000:41:00.0"),
           ("gpus", "Take offline: node1/0000:41:00.0"), ("gpus", "Describe node1/0000:41:00.0"),
           ("vms", "VM vision-1"), ("vms", "Make a new agent key for vision-1"),
           ("vms", "Set the project of vision-1"), ("admin", "New token"), ("admin", "New project"),
           ("admin", "Change project vision"))


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
        page.click(control)
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
    pool = played_pool.small_pool()
    pool.add_host("node4", up=False, why="connection refused")
    with Page(pool, dark=dark) as page:
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


def sorts_and_filters():
    with Page(token=ADMIN) as page:
        page.view("gpus")
        column = "return [...document.querySelectorAll('#view-gpus tbody tr')].map(" \
                 "r => r.cells[3].textContent)"
        page.click("Memory")
        assert page.js(column)[0] == "8 GiB"
        page.click("Memory")
        assert page.js(column)[0] == "45 GiB"
        assert page.js("return document.querySelector('#view-gpus [aria-sort]').ariaSort") == \
            "descending"
        page.tab_to("Filter GPUs", SHIFT + TAB)
        page.keys("node2 speech")
        page.wait("return document.querySelectorAll('#view-gpus tbody tr').length === 2",
                  "two rows")
        page.keys("nothing")
        page.wait_text("The filter leaves no rows.")


def large():
    with Page(played_pool.large_pool()) as page:
        page.login()
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


# ---- the played service ----

def follows_openapi():
    """Every answer that the tests got has the form of openapi.yaml."""
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise pytap.Skip("python3-jsonschema is not installed") from None
    with open(os.path.join(TOP, "ctl", "pool", "openapi.yaml"), encoding="utf-8") as f:
        api = json.loads(json.dumps(yaml.safe_load(f), default=str))
    if not ANSWERS:
        raise pytap.Skip("no test called the service")
    forms, wrong, seen = {}, set(), set()
    for method, path, status, value, _ in ANSWERS:
        answers = api["paths"][path][method.lower()]["responses"]
        assert str(status) in answers, f"{method} {path}: {status}"
        if value is None or "<img" in json.dumps(value):
            continue
        seen.add((method, path))
        reference = answers[str(status)]["content"]["application/json"]["schema"]["$ref"]
        if reference not in forms:
            forms[reference] = jsonschema.Draft202012Validator(
                {"$ref": reference, "components": api["components"]})
        if len(wrong) < 10:
            wrong.update(f"{method} {path}: {e.json_path}: {e.message[:200]}"
                         for e in forms[reference].iter_errors(value))
    assert not wrong, "\n".join(sorted(wrong))
    assert len(seen) > 15, seen


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
    (plots, "a plot has the same numbers as its sentence and its table"),
    (sorts_and_filters, "tables sort and filter"),
    (large, "1,000 VMs and 200 GPUs are shown in pages"),
    (follows_openapi, "the played service answers as openapi.yaml says"),
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


if __name__ == "__main__":
    sys.exit(main())
