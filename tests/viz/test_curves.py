import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import resolvent as rs
from resolvent.rl.q_table import Curve
from resolvent.viz.curves import draw_curves, smoothed


def curve(returns):
    returns = np.array(returns, float)
    return Curve(returns, returns / 2, returns.astype(np.int64), np.zeros(len(returns)))


CURVES = {"machines": [curve([1, 3, 5, 7]), curve([3, 3, 3, 3])], "raw": [curve([0, 1])]}


def test_each_episode_is_the_mean_of_the_last_few():
    assert smoothed(CURVES["machines"], "return", 3).tolist() == [[1, 2, 3, 5], [3, 3, 3, 3]]
    assert smoothed(CURVES["machines"], "discounted return", 1)[0].tolist() == [0.5, 1.5, 2.5, 3.5]
    assert smoothed(CURVES["raw"], "steps", 99).tolist() == [[0, 0.5]]


def test_a_picture_in_svg_names_what_it_shows_and_is_the_same_again(tmp_path):
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"
    for path in (first, again):
        draw_curves(path, CURVES, window=2, optimum=6.0, title="a world")
    assert first.read_bytes() == again.read_bytes()
    ElementTree.fromstring(first.read_bytes())  # noqa: S314
    shown = first.read_text()
    for words in ("machines", "raw", "optimum", "a world", "episode", "return, mean of 2 episodes"):
        assert f"<!-- {words} -->" in shown
    assert "<dc:date>" not in shown


def test_a_line_goes_through_the_means(tmp_path):
    """In the picture the means over seeds, 2, 3, 4, 5, lie on a straight line."""
    path = tmp_path / "line.svg"
    draw_curves(path, {"machines": CURVES["machines"]}, window=1)
    tree = ElementTree.fromstring(path.read_bytes())  # noqa: S314
    drawn = [
        [tuple(map(float, point.split())) for point in element.attrib["d"][1:].split("L")]
        for element in tree.iter("{http://www.w3.org/2000/svg}path")
        if element.attrib.get("style", "").find("#0072b2") >= 0
        and "fill: none" in element.attrib["style"]
    ]
    (line,) = (points for points in drawn if len(points) == 4)
    heights = [-y for _, y in line]
    assert np.diff(heights) == pytest.approx([np.diff(heights)[0]] * 3, abs=1e-3)
    assert heights[0] < heights[-1]


def test_a_picture_in_png(tmp_path):
    draw_curves(tmp_path / "curve.png", CURVES)
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("curve.pdf", {}, ".png or .svg"),
        ("curve.svg", {"window": 0}, "window"),
        ("curve.svg", {"measure": "joy"}, "joy"),
    ],
)
def test_what_cannot_be_drawn(tmp_path, name, options, word):
    with pytest.raises(rs.OptionError, match=word):
        draw_curves(tmp_path / name, CURVES, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("group", [[], [curve([1]), curve([1, 2])]])
def test_curves_of_one_line_are_equally_long(tmp_path, group):
    with pytest.raises(rs.OptionError, match="equally long"):
        draw_curves(tmp_path / "curve.svg", {"line": group})


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(rs.errors.MissingExtra, match=r"resolvent\[figures\]"):
        draw_curves(tmp_path / "curve.svg", CURVES)
    assert not list(tmp_path.iterdir())
