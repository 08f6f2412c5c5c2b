from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from picture_machines import machine_of
from PIL import ImageFont

from noisy_worlds import loaded_die, noisy_house
from resolvent._util.text import visible
from resolvent.machines.tables import AlternativeTransitions, Support
from resolvent.viz.dot import edges, to_dot
from resolvent.viz.picture import (
    MOST_ARROWS,
    listed,
    picture_of,
    set_in_lines,
    shortened,
    successor_line,
    width,
)
from resolvent.viz.svg import to_svg

OPEN_SANS = Path(find_spec("ttf_opensans").origin).parent / "ttf" / "OpenSans-Regular.ttf"


def names(machine):
    return [box.name for box in picture_of(machine).boxes]


def chain(labels):
    """States in a row, each reached by the next label of a list."""
    alphabet = sorted(set(labels))
    step = [[-1] * len(alphabet) for _ in range(len(labels) + 1)]
    for state, label in enumerate(labels):
        step[state][alphabet.index(label)] = state + 1
    return machine_of(step, alphabet)


def test_states_are_named_by_how_they_are_reached():
    assert names(chain(["key", "door"])) == [("start",), ("after key",), ("after key, door",)]


def test_a_label_read_again_and_again_is_counted():
    assert names(chain(["press"] * 4 + ["eat"]))[4:] == [
        ("after press ×4",),
        ("after press ×4,", "eat"),
    ]


def test_a_long_history_is_named_by_its_end():
    last = picture_of(chain(["press", "eat"] * 6)).boxes[-1]
    assert last.name == ("after 12 labels:", "… press,", "eat")
    assert last.hover == "state 12: after " + ", ".join(["press", "eat"] * 6)


def test_labels_of_one_arrow_are_listed_and_the_rest_counted():
    few = machine_of([[1, 1], [-1, -1]], ["bell", "key"])
    assert [arrow.lines for arrow in picture_of(few).arrows] == [("bell, key",)]
    labels = [f"label number {number:02}" for number in range(9)]
    (arrow,) = picture_of(machine_of([[0] * 9], labels)).arrows
    assert arrow.lines == ("label number 00,", "label number 01,", "7 more")
    assert arrow.hover == f"from 0 to 0: {', '.join(labels)}"


def lines_by_trying(labels):
    """What stands on an arrow: as many labels as fit in three lines, tried from all of them on."""
    short = [shortened(visible(label), 12, 116) for label in labels]
    for kept in range(len(short), 0, -1):
        more = [f"{len(short) - kept} more"] if kept < len(short) else []
        lines = set_in_lines([*short[:kept], *more], 12, 116)
        if len(lines) <= 3:
            break
    return tuple(lines)


@settings(deadline=None)
@given(
    st.integers(1, 120).flatmap(
        lambda count: st.lists(
            st.text(st.sampled_from("i.mW漢ש\u0301\n"), min_size=1, max_size=3),
            min_size=min(count, 60),
            max_size=count,
            unique=True,
        )
    )
)
def test_no_more_labels_fit_than_are_tried(labels):
    (arrow,) = picture_of(machine_of([[0] * len(labels)], labels)).arrows
    assert arrow.lines == lines_by_trying(labels)


def test_thousands_of_labels_are_counted_on_hovering_too():
    labels = [f"label{number:04}" for number in range(3000)]
    (arrow,) = picture_of(machine_of([[0] * 3000], labels)).arrows
    assert arrow.lines == ("label0000,", "label0001,", "2998 more")
    shown, more = arrow.hover.split(", … and ")
    listed = shown.removeprefix("from 0 to 0: ").split(", ")
    assert listed == labels[: len(listed)]
    assert more == f"{3000 - len(listed):,} more"
    assert 900 < sum(map(len, listed)) <= 1000


def test_an_endless_label_is_cut_on_hovering():
    (arrow,) = picture_of(machine_of([[0]], ["key" + "x" * 5000 + "end"])).arrows
    assert arrow.hover.startswith("from 0 to 0: keyxxx")
    assert arrow.hover.endswith("xxxend")
    assert len(arrow.hover) < 1100


def test_a_long_label_is_shortened_but_shown_on_hovering():
    label = "the door at the end of the corridor"
    (arrow,) = picture_of(machine_of([[0]], [label])).arrows
    (line,) = arrow.lines
    beginning, end = line.split("…")
    assert label.startswith(beginning)
    assert label.endswith(end)
    assert 12 < len(line) < 25
    assert arrow.hover.endswith(label)


def test_trivial_labels_are_left_out_with_a_note():
    content = picture_of(machine_of([[1, 0], [0, 1]], ["key", "rain"], trivial=(1,)))
    assert [(arrow.source, arrow.target) for arrow in content.arrows] == [(0, 1), (1, 0)]
    assert content.notes == ("Labels that change nothing are not drawn: rain.",)


def test_many_trivial_labels_are_counted():
    content = picture_of(machine_of([[0] * 15], [f"{n:02}" for n in range(15)], tuple(range(15))))
    (note,) = content.notes
    assert note.endswith("10, 11, 3 more.")


def test_what_was_never_seen_has_a_note():
    content = picture_of(machine_of([[1, -1], [0, 0]], ["bell", "key"]))
    assert content.notes == ("A label without an arrow was never seen in that state.",)


def test_a_whole_machine_needs_no_note():
    assert picture_of(machine_of([[0]], ["bell"])).notes == ()


def test_a_state_that_no_labels_lead_to():
    content = picture_of(machine_of([[0], [0]], ["bell"]))
    assert content.boxes[1].name == ("not reachable",)


def test_of_too_many_arrows_those_are_drawn_that_first_lead_to_a_state():
    everywhere = machine_of([list(range(30))] * 30, [f"{n:02}" for n in range(30)])
    content = picture_of(everywhere)
    assert len(content.boxes) == 30
    assert [(arrow.source, arrow.target) for arrow in content.arrows] == [
        (0, target) for target in range(1, 30)
    ]
    assert content.boxes[0].successors == ("stays: 00",)
    assert content.boxes[7].successors[:2] == ("stays: 07", "→ 0: 00")
    assert content.boxes[7].successors[-1] == "… and 23 other states"
    assert "→ 29: 29" in content.boxes[7].hover
    assert "Too many arrows" in content.notes[0]


def test_what_leads_to_states_not_drawn_is_told_where_arrows_are_too_many():
    everywhere = machine_of([list(range(30))] * 30, [f"{n:02}" for n in range(30)])
    content = picture_of(everywhere, most_states=9)
    assert len(content.arrows) == 8
    assert content.boxes[3].leads_out
    assert "→ 12: 12" in content.boxes[3].hover


def test_as_many_arrows_as_can_be_followed_are_drawn():
    few = machine_of([[one, (one + 1) % 20, (one + 7) % 20] for one in range(20)], ["a", "b", "c"])
    content = picture_of(few)
    assert len(content.arrows) == 60 == MOST_ARROWS
    assert not any(box.successors for box in content.boxes)


def test_an_arrow_taken_once_or_twice_is_dashed():
    machine = machine_of([[1, 0], [0, 1]], ["key", "bell"])
    often = replace(
        machine, support=Support(np.array([[2, 9], [3, 9]]), np.zeros(0, int), np.zeros(0, int))
    )
    content = picture_of(often)
    assert [(one.source, one.target) for one in content.arrows if one.is_dashed] == [(0, 1)]
    assert "A dashed arrow was taken only once or twice." in content.notes
    assert not any(one.is_dashed for one in picture_of(machine).arrows)


def test_a_state_tells_on_hovering_what_varies():
    drawn = picture_of(loaded_die(*[1.0] * 9, *[6.0] * 10, 3.0).reward)
    (box,) = drawn.boxes
    assert box.hover == "state 0: start\n0, roll:\n█████ 50% 6.0\n████ 45% 1.0\n▏ 5% 3.0"
    assert "Noise: 50% of all outputs differ from the most frequent one." in drawn.notes
    sure = picture_of(loaded_die(1.0).reward)
    assert [one.hover for one in sure.boxes] == ["state 0: start"]
    assert not [note for note in sure.notes if "Noise" in note]


def test_of_much_that_varies_the_most_frequent_exceptions_are_told():
    machine = noisy_house()[0].transition
    assert len({row for row in machine.output_counts.rows if row[0] == 1}) == 20
    first, *data, last = picture_of(machine).boxes[1].hover.split("\n")
    assert (first, last) == ("state 1: after key", "and 14 more with varying outputs")
    odd = []
    for line in data:
        if not line.endswith(":"):
            continue
        counts = machine.counts(1, *line.split(":")[0].split(", "))
        odd.append(sum(counts.values()) - max(counts.values()))
    assert odd == sorted(odd, reverse=True)
    assert len(odd) == 6


def test_many_answers_are_cut_short():
    (box,) = picture_of(loaded_die(*[1.0] * 9, 2.0, 3.0, 4.0, 5.0, 6.0).reward).boxes
    assert box.hover.split("\n")[-2:] == ["█ 7% 4.0", "and 2 others"]


def test_arrows_of_noisy_machines_are_as_thick_as_they_were_often_taken():
    drawn = picture_of(noisy_house()[0].transition)
    found = {(one.source, one.target): one for one in drawn.arrows}
    taken = {edge[:2]: edge.times for edge in edges(noisy_house()[0].transition)}
    assert taken[0, 1] < taken[1, 1]
    assert found[0, 1].width < found[1, 1].width == 3.2
    assert f"taken {taken[0, 1]:,} times" in found[0, 1].hover
    assert not found[0, 1].is_dashed
    assert "The more often a transition was taken, the thicker is its arrow." in drawn.notes
    assert all(one.width is None for one in picture_of(loaded_die(1.0).reward).arrows)


def test_a_move_that_might_lead_elsewhere_is_dashed_and_says_how_sure_it_is():
    machine = noisy_house()[0].transition
    key = machine.labels.code(frozenset({"key"}))
    target, log_odds = np.full(machine.transitions.shape, -1, np.int32), machine.transitions * 0.0
    target[0, key], log_odds[0, key] = 0, np.log(3)
    doubtful = replace(
        machine,
        support=replace(machine.support, alternatives=AlternativeTransitions(target, log_odds)),
    )
    assert doubtful.confidence(0, {"key"}) == pytest.approx(0.75)
    assert np.isnan(doubtful.confidence(1, {"key"}))
    drawn = picture_of(doubtful)
    (arrow,) = [one for one in drawn.arrows if (one.source, one.target) == (0, 1)]
    assert arrow.is_dashed
    assert "key (75%)" in " ".join(arrow.lines)
    assert any("A dashed arrow may lead elsewhere" in note for note in drawn.notes)
    svg = to_svg(doubtful)
    assert svg.count('stroke-dasharray="6 4"') == 1
    assert 'stroke-dasharray="6 4"' not in to_svg(machine)
    assert "style=dashed" in to_dot(doubtful)


@pytest.mark.parametrize(
    "text",
    ["after key", "north-west key", "no event", "WWWWMMMM", "illicit", "0123456789", "a_b (c) & d"],
)
def test_widths_are_not_less_than_a_real_fonts_and_not_much_more(text):
    real = ImageFont.truetype(str(OPEN_SANS), 100).getlength(text)
    assert 0.97 * real <= width(text, 100) <= 1.5 * real


@given(st.text(), st.integers(20, 200))
def test_shortened_texts_fit_and_keep_their_beginning(text, most):
    short = shortened(text, 10, most)
    assert short == text or "…" in short
    assert width(short, 10) <= max(most, width(text[:1] + "…", 10))
    assert short.split("…")[0] == text[: len(short.split("…")[0])]


@given(st.text())
def test_nothing_hidden_is_left(text):
    shown = visible(text)
    assert all(character.isprintable() or character.isspace() for character in shown)
    assert not set(shown) & set(map(chr, [*range(32), 127, 0x202E, 0x2028, 0xFFFE]))


@given(st.lists(st.text("abcdefg", min_size=1, max_size=9), min_size=1, max_size=9))
def test_lines_hold_all_parts_in_order(parts):
    lines = set_in_lines(parts, 10, 60)
    assert " ".join(lines) == ", ".join(parts)
    assert all(width(line, 10) <= 60 or ", " not in line for line in lines)


def test_right_to_left_has_a_line_for_itself():
    assert set_in_lines(["a", "שלום", "b", "c"], 10, 200) == ["a,", "שלום,", "b, c"]


def test_lists_name_the_first_and_count_the_others():
    labels = [f"label {number}" for number in range(12)]
    assert successor_line("→ 7", labels) == "→ 7: label 0, 11 more"
    assert listed(["key", "bell", "lamp"]) == "key, bell, lamp"
    assert listed(["key", "bell", "lamp"], 9) == "key, bell, … and 1 more"
