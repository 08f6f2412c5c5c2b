import io
import sys

import pytest
from picture_machines import Drawn, machine_of, random_machine
from PIL import Image

from resolvent.errors import MissingExtra, OptionError
from resolvent.viz.svg import PAPER_STYLE, to_png, to_svg

MACHINE = random_machine(4, ["bell", "key"], seed=1)


def image(machine, **options):
    return Image.open(io.BytesIO(to_png(machine, **options))).convert("RGB")


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_picture_of_the_svg_on_white(scale):
    wide, high = Drawn(to_svg(MACHINE), lambda text, size: 0).size
    picture = image(MACHINE, scale=scale)
    assert picture.size == (round(wide * scale), round(high * scale))
    assert picture.getpixel((0, 0)) == (255, 255, 255)


def test_boxes_are_where_the_svg_has_them():
    boxes = Drawn(to_svg(MACHINE), lambda text, size: 0).boxes
    picture = image(MACHINE, scale=1.0)
    for box in boxes.values():
        inside = (round(box.left + 10 + 6), round(box.top + 10 + 6))  # 10 of margin
        assert picture.getpixel(inside) == (0xED, 0xF4, 0xFC)


def test_texts_are_there():
    blank, text = (image(machine_of([[0]], [label]), scale=1.0) for label in (" ", "M"))
    above_the_loop = (0, 0, text.width, 26)
    assert min(text.crop(above_the_loop).convert("L").tobytes()) < 80
    assert min(blank.crop(above_the_loop).convert("L").tobytes()) == 255


def test_the_same_machine_gives_the_same_bytes():
    assert to_png(MACHINE) == to_png(MACHINE)


def test_no_more_states_than_asked_for():
    assert image(MACHINE, most_states=1).width < image(MACHINE).width


def test_paper_has_nothing_that_only_browsers_understand():
    assert not any(word in PAPER_STYLE for word in ("var(", "@media", ":hover", "{fill}"))


@pytest.mark.parametrize("scale", [0, -1, 11, float("nan")])
def test_a_scale_that_makes_no_picture(scale):
    with pytest.raises(OptionError, match=r"use 0\.1 to 10"):
        to_png(MACHINE, scale=scale)


@pytest.mark.parametrize("missing", ["resvg_py", "ttf_opensans"])
def test_a_missing_extra_is_named(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra, match=r'pip install "resolvent\[drawings\]"'):
        to_png(MACHINE)
