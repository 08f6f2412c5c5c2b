"""Three machines, and what is generalized, in a real browser."""

import pytest
from report_player import Player
from report_worlds import has_read

EVENTS = {"#transition": "key", "#reward": "toilet", "#machine-3": "sofa"}


def test_all_machines_light_up_together(three, opened):
    path, traces, _ = three
    page = opened(path)
    number, _ = Player(page, traces).place
    trace = traces[number]
    for step in range(len(trace)):
        for figure, event in EVENTS.items():
            state = str(int(has_read(trace, step, event)))
            lit = page.locator(f"{figure} .rs-state.lit")
            assert lit.evaluate_all("all => all.map(one => one.dataset.state)") == [state]
            assert page.locator(f"{figure} .now").inner_text() == f"state {state}"
        cost = 1 + has_read(trace, step, "sofa")
        facts = page.locator("#moment .fact").all_inner_texts()
        assert facts[2].splitlines()[-1] == f"cost state {cost - 1}"
        assert facts[-1] == f"cost\n{cost}\nas predicted"
        page.keyboard.press("ArrowRight")
    page.click("#first")


def test_every_section_has_every_machine(three, opened):
    page = opened(three[0])
    names = ["Transition Machine", "Reward Machine", "Cost Machine"]
    for section in ("#states", "#evidence", "#found"):
        headings = page.locator(f"{section} > h3").all_inner_texts()
        assert [one for one in headings if one in names] == names
    assert page.locator("#summary tbody tr").count() == 3
    header = page.locator("#steps th").all_inner_texts()
    assert header == [
        *("step", "observation", "label read", "TM", "RM", "cost state", "action"),
        *("next observation", "predicted", "reward", "predicted", "cost", "predicted"),
    ]
    page.locator('#machine-3 .rs-state[data-state="1"]').click()
    assert page.evaluate("() => document.querySelector(':target').id") == "machine-3-state-1"
    page.evaluate("() => scrollTo(0, 0)")


def test_what_is_assumed_has_a_mark(lamp, opened):
    page = opened(lamp)
    assert "4 outputs are generalized, 1 wrong." in page.locator(".verdict").inner_text()
    table = page.locator("#summary table")
    assert table.locator("th").all_inner_texts() == [
        *("predicts", "right", "wrong", "generalized, right", "generalized, wrong", "unseen")
    ]
    reward = table.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    assert reward == ["Reward Machine: the reward", "2", "0", "1", "1", "0"]
    assert page.locator("#moment .generalized").all_inner_texts() == [
        "reward\n5\npredicted 0 (generalized)",
        "cost\n3\nas predicted (generalized)",
    ]
    marked = page.locator("#steps tr:has(.mark)")
    assert marked.count() == 1
    assert marked.locator("td:has(.mark)").all_inner_texts() == ["0 generalized", "3 generalized"]


def test_nothing_assumed_leaves_no_trace(three, opened):
    page = opened(three[0])
    assert "generalized" not in page.locator("#summary").inner_text()
    assert page.locator(".generalized, .mark").count() == 0


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_three_machines(three, opened, width):
    page = opened(three[0], viewport={"width": width, "height": 844})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    for figure in EVENTS:
        assert page.locator(f"{figure} .rs-state.lit").count() == 1
