"""Pictures of grids as text and as pixels, on grids small enough to check by eye."""

import numpy as np
import pytest

from resolvent.worlds.drawing import PALETTE, Picture, checklist, text_pixels

WALL = (66, 70, 82)
FLOOR = (248, 247, 243)


def test_walls_and_doors_as_text() -> None:
    walls = frozenset({((0, 0), (0, 1)), ((0, 0), (1, 0)), ((1, 2), (0, 2))})
    picture = Picture(2, 3, (1, 1), {(0, 2): "key"}, {"key": "K"}, walls=walls, captions=("dark",))
    assert picture.ansi() == "\n".join(
        [
            "┌───┬─────┐",
            "│ · │ · K │",
            "├───┘  ───┤",
            "│ ·   @ · │",
            "└─────────┘",
            "@ agent  K key",
            "dark",
        ]
    )


def test_solid_ground_is_drawn_next_to_the_floor() -> None:
    solid = frozenset((row, column) for row in range(3) for column in range(1, 4))
    assert Picture(3, 4, (0, 0), solid=solid).ansi() == "\n".join(
        [
            "┌─────────┐",
            "│ @▒▒     │",
            "│ ·▒▒     │",
            "│ ·▒▒     │",
            "└─────────┘",
            "@ agent",
        ]
    )


def test_impassable_things_keep_their_letter() -> None:
    picture = Picture(1, 2, (0, 0), {(0, 1): "door"}, {"door": "D"}, solid=frozenset({(0, 1)}))
    assert picture.ansi().splitlines()[1:] == [
        "│ @#D │",
        "└─────┘",
        "@ agent  D door  # impassable now",
    ]


def cell_colors(picture: Picture, size: int) -> list[list[tuple[int, ...]]]:
    """The color in the upper left part of each cell, where no letter or disc is."""
    image = picture.rgb_array()
    left = (image.shape[1] - picture.columns * size) // 2
    return [
        [
            tuple(image[16 + row * size + size // 8, left + column * size + size // 8].tolist())
            for column in range(picture.columns)
        ]
        for row in range(picture.rows)
    ]


def test_cells_have_the_colors_of_their_things() -> None:
    things = {(0, 1): "key", (1, 0): "sofa", (1, 1): "key"}
    picture = Picture(2, 2, (0, 0), things, {"key": "K", "sofa": "S"}, solid=frozenset({(1, 1)}))
    assert cell_colors(picture, 72) == [[FLOOR, PALETTE[0]], [PALETTE[1], WALL]]
    red = Picture(1, 1, (0, 0), {(0, 0): "key"}, {"key": "K"}, colors={"key": (200, 0, 0)})
    assert cell_colors(red, 72) == [[(200, 0, 0)]]


def test_the_agent_is_a_dark_disc_with_a_light_rim() -> None:
    image = Picture(1, 1, (0, 0)).rgb_array()
    centre = image[16 + 36, image.shape[1] // 2]
    rim = image[16 + 36, image.shape[1] // 2 + 23]
    assert centre.max() < 60
    assert rim.min() > 200


@pytest.mark.parametrize("row", [0, 1, 2])
def test_walls_are_dark_lines_and_doors_are_gaps(row: int) -> None:
    walls = frozenset({((row, 0), (row, 1))})
    image = Picture(3, 2, (2, 1), walls=walls).rgb_array()
    middle = image.shape[1] // 2
    darkness = [tuple(image[16 + 72 * r + 36, middle].tolist()) == WALL for r in range(3)]
    assert darkness == [r == row for r in range(3)]


def test_captions_and_legend_add_lines_of_one_height() -> None:
    plain = Picture(2, 2, (0, 0)).rgb_array()
    captions = Picture(2, 2, (0, 0), captions=("a", "b")).rgb_array()
    assert captions.shape[0] - plain.shape[0] == 2 * 20
    assert captions.shape[1:] == plain.shape[1:]
    assert (captions[-16 - 40 : -16] < 100).any()
    assert captions.dtype == np.uint8


def test_long_captions_are_truncated() -> None:
    short = Picture(2, 2, (0, 0), captions=("x",)).rgb_array()
    assert Picture(2, 2, (0, 0), captions=("x" * 500,)).rgb_array().shape == short.shape


def test_long_legends_take_more_lines() -> None:
    legend = {f"thing number {number}": "T" for number in range(12)}
    one, many = Picture(2, 2, (0, 0), {}, {"a": "A"}), Picture(2, 2, (0, 0), {}, legend)
    assert many.rgb_array().shape[0] > one.rgb_array().shape[0] + 40


def test_every_letter_and_digit_has_a_shape_of_its_own() -> None:
    text = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;-+()[]/?=<>'!"
    shapes = {text_pixels(letter, 1).tobytes() for letter in text}
    assert len(shapes) == len(text)
    assert np.array_equal(text_pixels("é", 1), text_pixels("?", 1))
    assert text_pixels("abc", 2).shape == (10, 22)
    rows = ["".join(".#"[dot] for dot in row) for row in text_pixels("Hi", 1).tolist()]
    assert rows == ["#.#.###", "#.#..#.", "###..#.", "#.#..#.", "#.#.###"]
    assert text_pixels("", 3).shape == (15, 0)


def test_a_checklist_ticks_what_is_done() -> None:
    assert checklist({"a": True, "b": False}) == "[x] a  [ ] b"
