#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The documentation builds as HTML without a warning, and each of its links leads somewhere."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))

from docs_text import HtmlPage  # noqa: E402 pylint: disable=wrong-import-position
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
NEEDED = ("sphinx-build", "mandoc", "dot", "perl")
TMP = tempfile.mkdtemp()


def build(source, out):
    """Build; returns exit status and complaints."""
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        raise pytap.Skip("Sphinx, mandoc or Graphviz is not installed")
    run = subprocess.run(["sphinx-build", "-q", "-W", "--keep-going", "-b", "html",
                          "-d", out + ".trees", source, out], env=dict(os.environ, BUILD=BUILD),
                         capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


OUT = os.path.join(TMP, "html")


def builds():
    status, complaints = build(os.path.join(TOP, "Documentation"), OUT)
    assert status == 0 and not complaints, complaints[-4000:]
    documents = glob.glob(os.path.join(TOP, "Documentation", "*.rst"))
    documents += glob.glob(os.path.join(TOP, "Documentation", "man", "*"))
    assert len(documents) > 50
    for document in documents:
        name = os.path.splitext(os.path.relpath(document, os.path.join(TOP, "Documentation")))[0]
        assert os.path.getsize(os.path.join(OUT, name + ".html")) > 2000, name


def html_pages():
    found = {os.path.relpath(path, OUT): HtmlPage(path)
             for path in glob.glob(os.path.join(OUT, "**", "*.html"), recursive=True)}
    if not found:
        raise pytap.Skip("there is no HTML")
    return found


def target(page, link):
    """Return file and anchor that a link of a page names, or None for one elsewhere."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = urllib.parse.unquote(parts.path)
    name = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    return name, urllib.parse.unquote(parts.fragment)


def links_lead_somewhere():
    found = html_pages()
    bad, looked = [], 0
    for name, page in found.items():
        bad += [f"{name}:{line}: a reference without a target" for line in page.problems]
        for link in page.links:
            goal = target(name, link)
            if not goal or link.startswith("data:"):
                continue
            looked += 1
            if not os.path.exists(os.path.join(OUT, goal[0])):
                bad.append(f"{name}: {link}: no such file")
            elif goal[1] and goal[0] in found and goal[1] not in found[goal[0]].anchors:
                bad.append(f"{name}: {link}: no such place")
    assert looked > 1000, f"only {looked} links"
    assert not bad, "\n".join(bad)


def pages_are_reached():
    found = html_pages()
    reached, unread = set(), ["index.html"]
    while unread:
        name = unread.pop()
        if name in reached or name not in found:
            continue
        reached.add(name)
        unread += [goal[0] for goal in (target(name, link) for link in found[name].links) if goal]
    lost = set(found) - reached - {"search.html", "genindex.html"}
    assert len(reached) > 50 and not lost, lost


def mistakes_are_noticed():
    """Three pages with a mistake of each kind, built as the documentation is."""
    top = os.path.join(TMP, "top")
    pages = os.path.join(top, "Documentation")
    os.makedirs(pages)
    shutil.copy(os.path.join(TOP, "VERSION"), top)
    shutil.copy(os.path.join(TOP, "Documentation", "conf.py"), pages)
    shutil.copytree(os.path.join(TOP, "Documentation", "sphinx"), os.path.join(pages, "sphinx"))
    for name, text in (
            ("index", "Index\n=====\n\nSee page.rst.\n\n.. toctree::\n\n   page\n"),
            ("page", "Page\n====\n\nSee nowhere.rst, :doc:`absent` and missing_.\n\n"
                     ".. kernel-doc:: gone.h\n"),
            ("lonely", "Lonely\n======\n")):
        with open(os.path.join(pages, name + ".rst"), "w", encoding="utf-8") as file:
            file.write(text)
    status, complaints = build(pages, os.path.join(TMP, "bad"))
    assert status != 0
    for text in ("no page nowhere.rst", "unknown document: 'absent'", "Unknown target name",
                 "there is no gone.h", "lonely.rst: WARNING: document isn't included"):
        assert text in complaints, (text, complaints[-3000:])
    assert complaints.count("WARNING") + complaints.count("ERROR") == 5, complaints
    assert '<a class="reference internal" href="page.html"' in \
        open(os.path.join(TMP, "bad", "index.html"), encoding="utf-8").read()


try:
    STATUS = pytap.run([
        (builds, "the pages build without a warning"),
        (links_lead_somewhere, "each link leads to a page, and to a place on it"),
        (pages_are_reached, "each page is reached from the first one"),
        (mistakes_are_noticed, "a reference without a target and a lost page are noticed"),
    ])
finally:
    shutil.rmtree(TMP)
sys.exit(STATUS)
