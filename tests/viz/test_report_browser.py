"""The page in a real browser: machines are seen, and the player lights the right states."""

import gymnasium as gym
import pytest
from report_player import Player, house_states, walked_states

import resolvent as rs
from synthetic_pair import synthetic

KINDS = ("transition", "reward")


@pytest.mark.parametrize("kind", KINDS)
def test_both_machines_are_seen(house, opened, kind):
    path, _, pair = house
    page = opened(path)
    picture = page.locator(f"#{kind} svg")
    picture.scroll_into_view_if_needed()
    size, window = picture.bounding_box(), page.viewport_size
    assert size["width"] > 150
    assert size["height"] > 80
    assert size["x"] >= 0
    assert size["x"] + size["width"] <= window["width"]
    assert 0 <= size["y"] <= size["y"] + size["height"] <= window["height"]
    boxes = page.locator(f"#{kind} .rs-state rect")
    assert boxes.count() == getattr(pair, kind).states == 2
    for box in [one.bounding_box() for one in boxes.all()]:
        assert min(box["width"], box["height"]) > 20
        assert size["x"] <= box["x"] <= box["x"] + box["width"] <= size["x"] + size["width"]
    event = {"transition": "key", "reward": "toilet"}[kind]
    arrow = page.locator(f'#{kind} .rs-arrow[data-from="0"][data-to="1"]')
    assert arrow.bounding_box()["width"] > 10
    assert page.locator(f"#{kind} .rs-label").all_text_contents().count(event) == 1


def test_every_way_of_stepping_lights_the_states(house, opened):
    path, traces, _ = house
    page = opened(path)
    player = Player(page, traces)
    last = player.last
    assert last > 4
    player.shows(0, house_states)
    for step in range(1, last + 1):
        page.click("#forward")
        player.shows(step, house_states)
    assert page.locator("#forward").is_disabled()
    for step in reversed(range(last)):
        page.click("#back")
        player.shows(step, house_states)
    assert page.locator("#back").is_disabled()
    page.click("#last")
    player.shows(last, house_states)
    page.click("#first")
    player.shows(0, house_states)
    page.locator("#position").fill("3")
    player.shows(3, house_states)
    page.locator("#steps tr.step").nth(1).click()
    player.shows(1, house_states)


def test_keys_step_too(house, opened):
    path, traces, _ = house
    page = opened(path)
    player = Player(page, traces)
    last = player.last
    for step in range(1, last + 1):
        page.keyboard.press("ArrowRight")
        player.shows(step, house_states)
    page.keyboard.press("ArrowRight")
    player.shows(last, house_states)
    page.keyboard.press("ArrowLeft")
    player.shows(last - 1, house_states)
    page.locator("#back").focus()
    page.keyboard.press("Home")
    player.shows(0, house_states)
    page.keyboard.press("End")
    player.shows(last, house_states)
    page.locator("#position").focus()
    page.keyboard.press("ArrowLeft")  # the slider's own key: one step, not two
    player.shows(last - 1, house_states)


def test_other_traces_are_played(house, opened):
    path, traces, _ = house
    page = opened(path)
    player = Player(page, traces)
    places = page.locator("#trace option").count()
    assert places == 3
    met = set()
    for place in range(places):
        page.select_option("#trace", index=place)
        player.shows(0, house_states)
        page.click("#last")
        player.shows(player.last, house_states)
        met.add(player.place[0])
    lengths = [len(trace) for trace in traces]
    assert {lengths.index(min(lengths)), lengths.index(max(lengths))} <= met


def test_the_mismatch_is_found(wrong, opened):
    page = opened(wrong)
    player = Player(page, None)
    first = page.locator("#trace option").first.inner_text()
    assert first == "3 (5 steps): has the first mismatch, the longest"
    assert player.place == (3, 1)
    red = page.locator("#moment .wrong")
    assert red.all_inner_texts() == ["reward\n5\npredicted 0"]
    assert page.locator("#moment .right").all_inner_texts() == [
        "next observation\ncorridor\nas predicted"
    ]
    red_part, _, blue_part = colour(red, "background-color")
    assert red_part > blue_part + 15
    page.click("#wrong")
    assert player.place == (3, 3)
    assert red.all_inner_texts() == ["reward\n7\npredicted 0"]
    page.click("#wrong")
    assert player.place == (3, 1)
    marked = page.locator("#steps tr:has(td.wrong) td:first-child").all_inner_texts()
    assert marked == ["1", "3"]
    page.click("#first")
    assert red.count() == 0
    page.select_option("#trace", index=1)
    assert page.locator("#wrong").is_hidden()
    page.locator(".verdict a").click()
    assert player.place == (3, 1)


def colour(locator, name):
    text = locator.evaluate("(one, name) => getComputedStyle(one)[name]", name)
    return [int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(",")]


def test_a_place_never_shown_is_no_prediction(house, opened, tmp_path):
    _, _, pair = house
    calm = rs.Trace(["corridor"] * 3, [[]] * 3, ["down"] * 2, [0] * 2)
    traces = rs.TraceSet([rs.Trace(["corridor", "attic"], [[]] * 2, ["fly"], [0]), calm])
    rs.report(pair, traces, tmp_path / "report.html")
    page = opened(tmp_path / "report.html", "#trace-0-step-0")
    assert page.locator("#moment .unseen").all_inner_texts() == [
        "next observation\nattic\nunseen: no prediction",
        "reward\n0\nunseen: no prediction",
    ]


def test_the_map_lights_the_cell(opened, tmp_path):
    traces = rs.collect(gym.make("resolvent/PhaseGrid3-v0"), episodes=100, seed=0)
    rs.infer(traces).report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    player = Player(page, traces)
    cells = page.locator("#map .cell")
    assert cells.count() == 9
    trace = traces[player.place[0]]
    for step in range(len(trace)):
        across, up = trace.observations[step]
        marked = cells.evaluate_all(
            "all => all.flatMap((one, n) => one.matches('.lit') ? [n] : [])"
        )
        assert marked == [(2 - up) * 3 + across]  # row by row from the top
        assert cells.nth(marked[0]).inner_text().endswith(f"({across}, {up})")
        page.keyboard.press("ArrowRight")
    page.locator("#map").scroll_into_view_if_needed()
    controls = page.locator(".controls").bounding_box()
    assert 0 <= controls["y"] < page.viewport_size["height"]


def test_a_large_world(grid, opened):
    path, traces, pair = grid
    page = opened(path)
    player = Player(page, traces)
    for step in range(12):
        player.shows(step, walked_states(pair))
        page.keyboard.press("ArrowRight")
    drawing, box = page.locator("#transition svg"), page.locator("#transition .drawing")
    assert drawing.bounding_box()["width"] <= box.bounding_box()["width"]
    assert page.locator("#map .cell.lit").count() == 1


def test_it_plays_by_itself(house, opened):
    path, traces, _ = house
    page = opened(path)
    player = Player(page, traces)
    page.select_option("#speed", "200")
    page.click("#play")
    assert page.locator("#play").inner_text() == "Pause"
    page.wait_for_function("() => document.querySelector('#forward').ariaDisabled === 'true'")
    player.shows(player.last, house_states)
    page.wait_for_function("() => document.querySelector('#play').textContent === 'Play'")
    page.click("#play")  # from the end, it begins anew
    page.click("#play")
    assert page.locator("#play").inner_text() == "Play"
    assert player.place[1] < player.last


def test_nothing_plays_where_less_motion_is_asked_for(house, opened):
    page = opened(house[0], reduced_motion="reduce")
    assert page.locator("#play").is_hidden()
    assert page.locator("#forward").is_visible()


def test_a_step_has_an_address(house, opened):
    path, traces, _ = house
    page = opened(path)
    page.select_option("#trace", index=1)
    page.locator("#position").fill("1")
    number, _ = Player(page, traces).place
    fragment = page.locator("#where").get_attribute("href")
    assert fragment == f"#trace-{number}-step-1"
    there = Player(opened(path, fragment), traces)
    assert there.place == (number, 1)
    there.shows(1, house_states)
    page.click("#first")
    page.evaluate("fragment => { location.hash = fragment; }", fragment)
    page.wait_for_function("() => document.querySelector('#position').value === '1'")
    nowhere = opened(path, "#trace-99999-step-2")
    assert Player(nowhere, traces).place[1] == 0


def test_states_lead_to_what_they_mean(house, opened):
    page = opened(house[0])
    page.locator('#transition .rs-state[data-state="1"]').click()
    row = page.locator("#transition-state-1")
    assert row.locator("td").first.inner_text() == "1"
    assert "(corridor, up) → cyanroom" in row.inner_text()
    assert 0 < row.bounding_box()["y"] < page.viewport_size["height"]
    page.locator("#reward .now").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.querySelector(':target').id") == "reward-state-0"


def test_hundreds_of_states(opened, tmp_path):
    pair, traces = synthetic(150, 200, 20)
    rs.report(pair, traces, tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    states_at = walked_states(pair)
    player = Player(page, traces)
    for step in range(10):
        shown = player.shown()
        state, _ = states_at(traces[shown["trace"]], step)
        caption = shown["captions"]["transition"]
        assert caption.split(",")[0] == f"state {state}"
        assert shown["states"]["transition"] == ([] if "not drawn" in caption else [state])
        page.keyboard.press("ArrowRight")
