"""What a page says of pictures, and what it does with functions that draw badly."""

import numpy as np
import pytest
from report_worlds import lamp_traces, lamps

import resolvent as rs
from resolvent.errors import OptionError
from resolvent.evaluation.evidence import collect_evidence
from resolvent.machines import UNSEEN
from resolvent.traces.symbols import as_symbol
from resolvent.viz import thumbnails as galleries
from resolvent.viz.report.learning import policy
from resolvent.viz.report.page import contents
from resolvent.viz.thumbnails import Gallery, value_text

OFF, ON = map(as_symbol, lamps())


def images(count):
    for number in range(count):
        yield as_symbol(np.array([[number % 251, number // 251, 99]] * 3))


def test_a_picture_has_one_number_wherever_it_is_told():
    gallery = Gallery()
    captions = [gallery.caption(one) for one in (OFF, ON, OFF, (("image", ON), ("room", 1)))]
    assert [one["pictures"] for one in captions] == [[0], [1], [0], [1]]
    assert captions[3]["text"].startswith("{image: image#")
    assert len(gallery.pictures()) == 2
    assert gallery.missing(gallery.pictures()) == []


def test_where_observations_appear_they_are_pictured():
    traces = lamp_traces()
    pair = rs.infer(traces).machines
    data = contents(pair, collect_evidence(pair, traces))
    texts = data["player"]["texts"]
    one = next(one for one in data["player"]["traces"] if one["number"] == 0)
    seen = [texts[step[0]]["pictures"] for step in one["steps"]]
    then = [texts[step[3][0]]["pictures"] for step in one["steps"]]
    assert seen == [[0], [1]]
    assert then == [[1], [0]]
    assert all(isinstance(texts[step[place]], str) for step in one["steps"] for place in (1, 2))
    answers = data["machines"][0]["states"][0]["outputs"]
    assert [(one["query"]["pictures"], one["output"]["pictures"]) for one in answers] == [
        ([0], [1])
    ]
    paid = data["machines"][1]["left_out"]["outputs"]  # captions the other machine's state
    assert [one["pictures"] for one, _ in paid if "press" in one["text"]] == [[0], [0]]
    assert {amount for _, amount in paid} == {"0", "1"}
    (weak,) = data["machines"][0]["proof"]["weakest"]
    assert weak["by"]["pictures"] == [0]
    assert sorted(answer["pictures"] for answer in weak["outputs"]) == [[0], [1]]
    left_out = data["machines"][0]["left_out"]["outputs"]
    assert [out["pictures"] for _, out in left_out] == [[0]] * 2  # to wait turns the lamp off


def test_policies_are_pictured():
    traces = lamp_traces()[:1]
    result = rs.infer(traces)
    rows = policy(rs.plan(result, traces), Gallery())["rows"]
    assert {row[0]["pictures"][0] for row in rows} == {0, 1}


def test_too_many_pictures_are_left_out_in_words(monkeypatch):
    monkeypatch.setattr(galleries, "MOST_PICTURES", 4)
    gallery = Gallery()
    captions = [gallery.caption(one) for one in (*images(7), *images(7))]
    assert [isinstance(one, str) for one in captions] == ([False] * 4 + [True] * 3) * 2
    assert gallery.missing(gallery.pictures()) == [
        "The page holds 4 pictures of observations, and leaves out 3 others to stay small."
    ]


def test_pictures_that_are_too_large_are_left_out_in_words(monkeypatch):
    gallery = Gallery()
    for one in images(5):
        gallery.caption(one)
    sizes = [len(one.address) for one in gallery.pictures()]
    monkeypatch.setattr(galleries, "MOST_BYTES", sum(sizes[:3]))
    assert [one is None for one in gallery.pictures()] == [False] * 3 + [True] * 2
    assert "leaves out 2 others" in gallery.missing(gallery.pictures())[0]


def test_a_function_draws_instead():
    asked = []

    def draw(observation):
        asked.append(observation)
        return None if observation == "hall" else np.full((200, 100, 3), 9, np.uint8)

    gallery = Gallery(draw)
    assert gallery.caption("hall") == "hall"
    assert gallery.caption("attic") == {"text": "attic", "pictures": [0]}
    assert gallery.caption(OFF, "(off, press)") == {"text": "(off, press)", "pictures": [0]}
    assert asked == ["hall", "attic", OFF]
    (drawn,) = gallery.pictures()
    assert (drawn.width, drawn.height) == (20, 40)


@pytest.mark.parametrize(
    ("given", "shade"),
    [
        (np.full((3, 3), 7), 7),
        (np.full((3, 3, 1), 7.4), 7),
        (np.ones((3, 3, 3), bool), 255),
        (np.full((3, 3, 3), 0.2), 51),
        ([[[1, 2, 3]]], 1),
    ],
)
def test_what_a_function_may_give(given, shade):
    assert galleries._pixels(np.asarray(given), "")[0, 0, 0] == shade


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (7, "draw_of is a int: give a function"),
        (lambda _: 1 / 0, r"draw_of\(hall\) raised ZeroDivisionError: division by zero"),
        (lambda _: 3, r"draw_of\(hall\) gave a single int: give an array of H×W×3"),
        (lambda _: np.zeros((3, 84, 84)), "gave 3×84×84: give"),
        (lambda _: np.zeros((0, 3)), "gave 0×3: give"),
        (lambda _: np.full((3, 3), 300), "gave numbers from 300 to 300: give"),
        (lambda _: np.full((3, 3), np.nan), "gave numbers from nan to nan: give"),
        (lambda _: [["a"] * 3] * 3, "gave an array of <U1: give"),
        (lambda _: [[1], [2, 3]], r"draw_of\(hall\) raised ValueError"),
    ],
)
def test_a_function_that_draws_badly_is_told_in_one_line(draw, message):
    with pytest.raises(OptionError, match=message) as caught:
        Gallery(draw).caption("hall")
    assert "\n" not in str(caught.value)


def test_values_as_text():
    values = "hall", 1.0, (1, 2), UNSEEN
    assert [*map(value_text, values)] == ["hall", "1", "(1, 2)", "never seen"]
