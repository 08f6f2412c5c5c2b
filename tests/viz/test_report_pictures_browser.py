"""Pictures of observations in a real browser: they are seen, where the observations are."""

import gymnasium as gym
import numpy as np
import pytest
from report_worlds import lamp_traces, lamps

import resolvent as rs

# What a browser has made of an image: its size as shown, and the pixels it holds.
PIXELS = """(image) => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return [canvas.height, canvas.width,
    [...context.getImageData(0, 0, canvas.width, canvas.height).data]];
}"""


def pixels(image):
    height, width, values = image.evaluate(PIXELS)
    return np.array(values).reshape(height, width, 4)[:, :, :3]


@pytest.fixture(scope="module")
def lit(tmp_path_factory):
    path = tmp_path_factory.mktemp("lit") / "report.html"
    rs.report(rs.infer(lamp_traces()).machines, lamp_traces(spoiled=True), path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_player_shows_what_is_seen(lit, opened, scheme):
    page = opened(lit, "#trace-0-step-0", color_scheme=scheme)
    off, on = lamps()
    seen, then = page.locator("#moment img").all()
    assert np.array_equal(pixels(seen), off)
    assert np.array_equal(pixels(then), on)
    assert seen.bounding_box()["width"] == 90  # each pixel nine, and twice that in the player
    page.click("#forward")
    seen, then = page.locator("#moment img").all()
    assert np.array_equal(pixels(seen), on)
    assert np.array_equal(pixels(then), off)


def test_a_wrong_prediction_shows_both(lit, opened):
    page = opened(lit)
    page.get_by_text("Show it").click()
    fact = page.locator("#moment .fact.wrong").first
    off, on = lamps()
    happened, predicted = (pixels(one) for one in fact.locator("img").all())
    assert np.array_equal(happened, off)
    assert np.array_equal(predicted, on)
    assert "predicted {image: image#" in fact.text_content()
    assert (
        "differ in 4 of 61 values: image[1, 2, 0] is 200 and 0"
        in page.locator(".verdict").text_content()
    )


def test_tables_have_pictures_beside_the_names(opened, tmp_path):
    rs.infer(lamp_traces()).report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    off, on = lamps()
    row = page.locator("#transition-state-0 td").nth(2)
    query, answer = (pixels(one) for one in row.locator("img").all())
    assert np.array_equal(query, off)
    assert np.array_equal(answer, on)
    assert "unlike 1 other state" in row.text_content()
    assert page.locator("#steps img").count() >= 3
    assert page.locator("#evidence img").count() == 3


def test_a_picture_is_in_the_file_once(lit):
    text = lit.read_text(encoding="utf-8")
    assert text.count("data:image/png;base64") == 2
    assert "img-src data:;" in text


def test_observations_of_any_kind_can_be_drawn(opened, tmp_path):
    """The corridor is drawn, and is the only one; rewards and actions of that name are not."""
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
    red = np.full((6, 6, 3), (255, 0, 0), np.uint8)
    path = tmp_path / "report.html"
    rs.infer(traces).report(path, draw_of=lambda seen: red if seen == "corridor" else None)
    page = opened(path, "#trace-0-step-0")
    (image,) = page.locator("#moment .fact:first-child img").all()
    assert page.locator("#moment .fact:first-child b").text_content() == "corridor"
    assert np.array_equal(pixels(image), red)
    beside = {one.text_content() for one in page.locator("#steps .pictured").all()}
    assert beside == {"corridor"}


def test_without_pictures_no_image_may_load(house):
    path, _, _ = house
    assert "img-src" not in path.read_text(encoding="utf-8")
