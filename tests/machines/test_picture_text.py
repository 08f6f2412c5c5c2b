from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageFont

from resolvent._util.text import visible
from resolvent.machines.picture.text import set_in_lines, shortened, width

OPEN_SANS = Path(find_spec("ttf_opensans").origin).parent / "ttf" / "OpenSans-Regular.ttf"


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
