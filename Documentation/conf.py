# SPDX-License-Identifier: GPL-2.0-only
"""Sphinx's configuration of the documentation: make htmldocs."""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "sphinx"))

project = "mgpu"
with open(os.path.join(HERE, "..", "VERSION"), encoding="utf-8") as file:
    version = release = file.read().strip()

extensions = ["sphinx.ext.graphviz", "mgpu_docs"]
# Manual pages are documents, too: mgpu_docs has mandoc convert them.
source_suffix = {".rst": "restructuredtext",
                 ".1": "man", ".4": "man", ".5": "man", ".8": "man"}
exclude_patterns = ["ABI", "netlink", "sphinx"]
highlight_language = "none"

# Every reference must have its target, but for the C identifiers in kernel-doc comments, most of
# which are the kernel's.
nitpicky = True
nitpick_ignore_regex = [("c:.*", ".*")]

graphviz_output_format = "svg"

html_theme = "alabaster"
html_theme_options = {
    "description": "one GPU for several virtual machines",
    "fixed_sidebar": True,
    "page_width": "1180px",
    "sidebar_width": "250px",
    "font_family": "sans-serif",
    "font_size": "15px",
    "show_powered_by": False,
}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html", "localtoc.html"]}
html_static_path = ["sphinx/static"]
html_css_files = ["mgpu.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
