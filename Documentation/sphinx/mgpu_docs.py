# SPDX-License-Identifier: GPL-2.0-only
"""Extension of Sphinx for the documentation of mgpu.

The pages are plain text first: a page names another one as locking.rst, and a program as
gpuctl(8).  This extension makes links of such names.  It also adds

- manual pages as documents, converted by mandoc;
- ``.. kernel-doc:: FILE``, the comments of a header, converted by the kernel's own script;
- ``.. netlink-spec:: FILE``, the tables of a netlink specification;
- ``.. sysfs-abi:: FILE``, the files of Documentation/ABI.

Paths are relative to the top of the sources.  The environment's KERNEL_DOC names the script
kernel-doc; without it that of a test kernel (make kernel), or of installed kernel headers, is
used.
"""

import glob
import os
import re
import shutil
import subprocess

import yaml
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.statemachine import StringList
from sphinx.errors import ExtensionError
from sphinx.parsers import Parser
from sphinx.util import logging
from sphinx.util.nodes import nested_parse_with_titles

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
LOG = logging.getLogger(__name__)

# "locking.rst", "Documentation/locking.rst", "gpuctl(8)"; names below other folders are no pages.
NAME = re.compile(r"(?<![\w/.-])(?:Documentation/)?(?P<page>[a-z0-9-]+)\.rst\b|"
                  r"(?<![\w/.-])(?P<man>[a-z][\w.-]*)\((?P<section>[1-8])\)")


# ---- links

def man_page(env, name, section):
    """Return the document of a manual page of the project, or None."""
    docname = f"man/{name}"
    if docname in env.found_docs and env.doc2path(docname).endswith(f"{name}.{section}"):
        return docname
    return None


def link(app, docname, target, text):
    reference = nodes.reference("", "", internal=True)
    reference["refuri"] = app.builder.get_relative_uri(docname, target)
    title = app.env.titles.get(target)
    if title is not None:
        reference["reftitle"] = title.astext()
    reference += nodes.Text(text)
    return reference


def heads_item(node, match):
    """Whether a name begins an item of a list, as in "- locking.rst: the locks"."""
    return (match.start() == 0 and node.astext()[match.end():].startswith(":") and
            node.parent[0] is node and isinstance(node.parent.parent, nodes.list_item))


def linked(app, docname, node):
    """Return what replaces a text: texts, and links in place of names."""
    text, parts, begin = node.astext(), [], 0
    for match in NAME.finditer(text):
        if match["page"]:
            target = match["page"]
            if target not in app.env.found_docs:
                LOG.warning("there is no page %s.rst", target, location=node)
                continue
        else:
            target = man_page(app.env, match["man"], match["section"])
        if not target or target == docname:
            continue
        parts += [nodes.Text(text[begin:match.start()]),
                  link(app, docname, target,
                       app.env.titles[target].astext() if heads_item(node, match) else match[0])]
        begin = match.end()
    return parts + [nodes.Text(text[begin:])] if parts else None


def make_links(app, doctree, docname):
    for node in list(doctree.findall(nodes.Text)):
        parent = node.parent
        while parent is not None and not isinstance(
                parent, (nodes.reference, nodes.literal, nodes.literal_block, nodes.title,
                         nodes.raw, nodes.comment)):
            parent = parent.parent
        if parent is None:
            parts = linked(app, docname, node)
            if parts:
                node.parent.replace(node, parts)


# ---- manual pages

def converted(program, *args):
    """Return the output of a program, which must be there and print no complaint."""
    path = shutil.which(program)
    if not path:
        raise ExtensionError(f"{program} is missing; run: make deps")
    run = subprocess.run([path, *args], capture_output=True, text=True, check=False)
    if run.returncode or run.stderr.strip():
        LOG.warning("%s %s: %s", program, " ".join(args), run.stderr.strip() or run.returncode)
    return run.stdout


class ManParser(Parser):
    """Makes a document of a manual page: a section for each of its .SH."""

    supported = ("man",)

    def parse(self, inputstring, document):
        self.setup_parse(inputstring, document)
        path = self.env.doc2path(self.env.docname)
        name, number = os.path.basename(path).rsplit(".", 1)
        html = converted("mandoc", "-T", "html", "-O", "fragment", path)
        page = self.section(document, f"{name}({number})", "page")
        found = re.findall(r'<section class="Sh">\s*<h1 class="Sh" id="([^"]*)">.*?</a></h1>'
                           r"(.*?)</section>\s*(?=<section class=\"Sh\">|</div>\s*<table)",
                           html, flags=re.S)
        if not found:
            LOG.warning("mandoc finds no sections", location=self.env.docname)
        for ident, text in found:
            section = self.section(page, ident.replace("_", " ").capitalize(), ident.lower())
            section += nodes.raw("", f'<div class="man">{self.links(text)}</div>', format="html")
        self.finish_parse()

    @staticmethod
    def section(parent, title, ident):
        section = nodes.section(ids=[nodes.make_id(ident)],
                                names=[nodes.fully_normalize_name(title)])
        section += nodes.title("", title)
        parent += section
        return section

    def links(self, html):
        def one(match):
            name, number = match[1], match[2]
            target = man_page(self.env, name, number)
            return f'<a href="{name}.html">{match[0]}</a>' if target else match[0]
        return re.sub(r"<b>([\w.-]+)</b>\(([1-8])\)", one, html)


# ---- generated parts

class Generated(Directive):
    """A directive whose text is made from a file; rst() makes it."""

    required_arguments = 1

    def rst(self, path):
        raise NotImplementedError

    def run(self):
        env = self.state.document.settings.env
        path = os.path.join(TOP, self.arguments[0])
        env.note_dependency(path)
        env.note_dependency(os.path.abspath(__file__))
        if not os.path.isfile(path):
            raise self.error(f"there is no {self.arguments[0]}")
        lines = StringList(self.rst(path).splitlines(), source=path)
        parent = nodes.section(document=self.state.document)
        nested_parse_with_titles(self.state, lines, parent)
        return parent.children


def kernel_doc():
    """Return the path of the kernel's script kernel-doc."""
    places = [os.environ.get("KERNEL_DOC", "")]
    for pattern in (f"{BUILD}/kernel/*/source/scripts", "/usr/lib/linux-kbuild-*/scripts",
                    "/lib/modules/*/build/scripts"):
        places += [os.path.join(folder, "kernel-doc") for folder in sorted(glob.glob(pattern))]
    for place in places:
        if place and os.path.isfile(place):
            return place
    raise ExtensionError("the kernel's script kernel-doc is missing; run: make kernel, "
                         "or set KERNEL_DOC")


class KernelDoc(Generated):
    """Comments of a file: all, or those of the functions that are named."""

    option_spec = {"functions": directives.unchanged_required}

    def rst(self, path):
        names = self.options.get("functions", "").split()
        text = converted("perl", kernel_doc(), "-rst", "-sphinx-version", "3.1",
                         *[word for name in names for word in ("-function", name)], path)
        for name in names:
            if not re.search(rf"^\.\. c:function:: .*\b{name} \(", text, flags=re.M):
                LOG.warning("%s: no comment of %s", path, name)
        return self.escaped(text)

    @staticmethod
    def escaped(text):
        """kernel-doc leaves |x|, NAME_* and NAME_... as they are, which are markup here."""
        out, literal = [], False
        for line in text.splitlines():
            if line and not line[0].isspace():
                literal = line.endswith("::")
            if not literal and "``" not in line and ".. c:" not in line:
                line = re.sub(r"\||(?<=[A-Z]_)\*|(?<=[A-Z])_(?=\W|$)", r"\\\g<0>", line)
            out.append(line)
        return "\n".join(out)


def table(widths, rows):
    """A table as reStructuredText: the first row is the head."""
    out = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in rows:
        for i, cell in enumerate(row):
            out.append(("   * - " if i == 0 else "     - ") + " ".join(str(cell).split()))
    return [*out, ""]


def words(text):
    """A text of the specification in reStructuredText, as a sentence begins."""
    text = re.sub(r"([*|`\\])", r"\\\1", " ".join((text or "").split()))
    return text[:1].upper() + text[1:] if text[:2].islower() else text


class NetlinkSpec(Generated):
    def rst(self, path):
        with open(path, encoding="utf-8") as file:
            spec = yaml.safe_load(file)
        out = [words(spec["doc"]), ""]
        out += self.operations(spec) + self.attributes(spec) + self.definitions(spec)
        return "\n".join(out)

    @staticmethod
    def heading(text):
        return [text, "-" * len(text), ""]

    def operations(self, spec):
        out = self.heading("Operations")
        rows = [("operation", "description", "request", "attributes", "permission")]
        for op in spec["operations"]["list"]:
            request = op.get("do", {}).get("request", {}).get("attributes", [])
            if "notify" in op:
                kind = (f"event in the group ``{op['mcgrp']}``, "
                        f"with the answer of ``{op['notify']}``")
            else:
                kind = "do" + (", dump" if "dump" in op else "")
            rows.append((f"``{op['name']}``", words(op["doc"]), kind,
                         ", ".join(f"``{name}``" for name in request),
                         "CAP_NET_ADMIN" if "admin-perm" in op.get("flags", []) or "notify" in op
                         else ""))
        return out + table("18 38 18 16 10", rows)

    def attributes(self, spec):
        out = []
        for group in spec["attribute-sets"]:
            if "subset-of" in group:
                continue
            out += self.heading(f"Attributes of {group['name']}")
            rows = [("attribute", "type", "meaning")]
            for attr in group["attributes"]:
                if attr["type"] == "pad":
                    continue
                kind = attr["type"]
                if "nested-attributes" in attr:
                    kind += f": {attr['nested-attributes']}"
                if "enum" in attr:
                    kind += f": {attr['enum']}"
                rows.append((f"``{attr['name']}``", kind, words(attr.get("doc"))))
            out += table("22 18 60", rows)
        return out

    def definitions(self, spec):
        out = self.heading("Constants")
        rows = [("name", "value")] + [(f"``{d['name']}``", d["value"])
                                      for d in spec["definitions"] if d["type"] == "const"]
        out += table("60 40", rows)
        for d in spec["definitions"]:
            if d["type"] != "enum":
                continue
            out += self.heading(f"Values of {d['name']}") + [words(d["doc"]) + ":", ""]
            rows = [("value", "name", "meaning")]
            rows += [(i, f"``{entry['name']}``", words(entry.get("doc")))
                     for i, entry in enumerate(d["entries"])]
            out += table("10 20 70", rows)
        return out


class SysfsAbi(Generated):
    """Files of sysfs, as Documentation/ABI/README of the kernel describes the format."""

    def rst(self, path):
        with open(path, encoding="utf-8") as file:
            entries = re.split(r"\n\n(?=What:)", file.read().strip())
        out = []
        for entry in entries:
            for name in re.findall(r"^What:\s*(.*)$", entry, flags=re.M):
                out.append(f"| ``{name}``")
            text = re.search(r"^Description:\n(.*)", entry, flags=re.M | re.S)
            if not text:
                LOG.warning("%s: an entry has no description: %s", path, entry[:60])
                continue
            out += [""]
            out += ["   " + re.sub(r"([*|`])", r"\\\1", line.strip()) if line.strip() else ""
                    for line in text[1].splitlines()]
            out += [""]
        return "\n".join(out)


def setup(app):
    app.add_source_parser(ManParser)
    app.add_directive("kernel-doc", KernelDoc)
    app.add_directive("netlink-spec", NetlinkSpec)
    app.add_directive("sysfs-abi", SysfsAbi)
    app.connect("doctree-resolved", make_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
