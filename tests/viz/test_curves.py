import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import resolvent as rs
from resolvent.rl.q_table import Curve
from resolvent.viz.curves import draw_curve, moving_mean

RETURNS = np.array([1.0, 3, 5, 7])
CURVE = Curve(RETURNS, RETURNS / 2, RETURNS.astype(np.int64), np.zeros(4))


@pytest.mark.parametrize(
    ("window", "means"), [(1, [1, 3, 5, 7]), (3, [1, 2, 3, 5]), (99, [1, 2, 3, 4])]
)
def test_each_episode_is_the_mean_of_the_last_few(window, means):
    assert moving_mean(RETURNS, window).tolist() == means


@pytest.mark.parametrize(("optimum", "measure"), [(6.0, "discounted return"), (None, "return")])
def test_a_picture_in_svg_names_what_it_shows_and_is_the_same_again(tmp_path, optimum, measure):
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"
    for path in (first, again):
        draw_curve(path, CURVE, optimum=optimum, title="a world")
    assert first.read_bytes() == again.read_bytes()
    ElementTree.fromstring(first.read_bytes())  # noqa: S314
    shown = first.read_text()
    for words in ("a world", "episode", f"{measure}, mean of 50 episodes"):
        assert f"<!-- {words} -->" in shown
    assert ("<!-- optimum -->" in shown) == (optimum is not None)
    assert "<dc:date>" not in shown


def test_a_line_goes_through_the_means(tmp_path):
    """In the picture the means, 1, 2, 3, 4, lie on a straight line."""
    path = tmp_path / "line.svg"
    draw_curve(path, CURVE, title="a world")
    tree = ElementTree.fromstring(path.read_bytes())  # noqa: S314
    (line,) = (
        [tuple(map(float, point.split())) for point in element.attrib["d"][1:].split("L")]
        for element in tree.iter("{http://www.w3.org/2000/svg}path")
        if "#0072b2" in element.attrib.get("style", "") and "fill: none" in element.attrib["style"]
    )
    heights = [-y for _, y in line]
    assert np.diff(heights) == pytest.approx([np.diff(heights)[0]] * 3, abs=1e-3)
    assert heights[0] < heights[-1]


def test_a_picture_in_png(tmp_path):
    draw_curve(tmp_path / "curve.png", CURVE, title="a world")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_only_pictures_are_drawn(tmp_path):
    with pytest.raises(rs.OptionError, match=r"\.png or \.svg"):
        draw_curve(tmp_path / "curve.pdf", CURVE, title="a world")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(rs.errors.MissingExtra, match=r"resolvent\[figures\]"):
        draw_curve(tmp_path / "curve.svg", CURVE, title="a world")
    assert not list(tmp_path.iterdir())
