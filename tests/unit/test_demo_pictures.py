#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Test tools/demo/pictures: a terminal's screen, and what the dashboard's is drawn from."""
import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SVG = "{http://www.w3.org/2000/svg}"


def program():
    loader = SourceFileLoader("pictures", os.path.join(TOP, "tools", "demo", "pictures"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


pictures = program()
dashboard = pictures.dashboard


def texts(lines):
    """Place, text, colour and weight of each text in the picture of lines."""
    root = xml.etree.ElementTree.fromstring(pictures.svg_of(lines))
    return [(int(t.get("x")), int(t.get("y")), t.text, t.get("fill"), t.get("font-weight"))
            for t in root.iter(SVG + "text")]


def test_each_part_of_a_line_has_its_place_and_colour():
    lines = ["plain", "a \x1b[1;31mred & bold\x1b[m  \x1b[2mfaint\x1b[22m again"]
    assert texts(lines) == [
        (8, 22, "plain", pictures.INK, None),
        (8, 40, "a", pictures.INK, None),
        (24, 40, "red & bold", pictures.COLOURS[1], "bold"),
        (120, 40, "faint", pictures.FAINT, None),
        (168, 40, "again", pictures.INK, None)], texts(lines)


def test_reverse_colours_have_a_background():
    root = xml.etree.ElementTree.fromstring(pictures.svg_of(["\x1b[7m\x1b[36m ID \x1b[m"]))
    paper, bar = root.iter(SVG + "rect")
    assert paper.get("fill") == pictures.PAPER
    assert (bar.get("x"), bar.get("width"), bar.get("fill")) == ("8", "32", pictures.COLOURS[6])
    assert [t.get("fill") for t in root.iter(SVG + "text")] == [pictures.PAPER]


def test_colours_last_from_line_to_line_and_blank_lines_at_the_end_go():
    lines = ["\x1b[32mgreen", "still", "", "\x1b[m  "]
    assert [t[3] for t in texts(lines)] == [pictures.COLOURS[2]] * 2
    assert 'height="54"' in pictures.svg_of(lines)


def test_an_attribute_without_a_picture_is_refused():
    try:
        pictures.svg_of(["\x1b[5mblink"])
    except pictures.PictureError as e:
        assert "no attribute 5" in str(e), e
    else:
        assert False, "it was taken"


def test_tmux_shows_the_last_screen_of_a_recording():
    if not shutil.which("tmux"):
        raise pytap.Skip("tmux is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "top.tty")
        with open(path, "wb") as f:
            f.write(b"before\r\n\x1b[?1049h\x1b[H\x1b[2Jfirst\x1b[H\x1b[1mlast \r\n\x1b[4;3Hdown")
        lines = [pictures.SGR.sub("", line).rstrip() for line in pictures.screen_of(path)]
    assert lines == ["last", "", "", "  down"], lines


def test_a_demo_without_a_recording_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        stderr, sys.stderr = sys.stderr, open(os.path.join(folder, "err"), "w", encoding="utf-8")
        try:
            status = pictures.main([folder])
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        with open(os.path.join(folder, "err"), encoding="utf-8") as f:
            said = f.read()
    assert status == 1 and "has no recording; run: make demo DEMO_TRACE=1" in said, said


def test_samples_get_the_labels_of_the_target_and_a_time():
    text = ('# TYPE a gauge\na 1\nb_total{name="x } y"} 2.5\n'
            'c_bucket{uuid="u",le="+Inf"} 3\n# EOF\n')
    target = 'instance="127.0.0.1:9960",job="mgpu"'
    assert list(dashboard.samples(text, 1795904136008)) == [
        f'a{{{target}}} 1 1795904136.008\n',
        f'b_total{{{target},name="x }} y"}} 2.5 1795904136.008\n',
        f'c_bucket{{{target},uuid="u",le="+Inf"}} 3 1795904136.008\n']


def test_rows_without_an_answer_go_and_those_below_move_up():
    panels = [{"id": i, "type": kind, "gridPos": {"x": 0, "y": y, "w": 8, "h": h}}
              for i, (kind, y, h) in enumerate((("row", 0, 1), ("stat", 1, 4), ("row", 5, 1),
                                                ("stat", 6, 8), ("row", 14, 1), ("stat", 15, 3)))]
    kept = dashboard.answered(panels, {0: {}, 1: {"A": []}, 2: {}, 3: {"A": [], "B": [{}]}, 4: {},
                                       5: {"A": [{}]}})
    assert [(p["id"], p["gridPos"]["y"]) for p in kept] == [(2, 0), (3, 1), (4, 9), (5, 10)], kept
    assert panels[3]["gridPos"]["y"] == 6


if __name__ == "__main__":
    sys.exit(pytap.run([(f, n[5:].replace("_", " "))
                        for n, f in list(globals().items()) if n.startswith("test_")]))
