"""The page in a real browser; skipped where there is none, or no Playwright."""

import shutil

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.display.report import write_report
from resolvent.evidence import gather

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs the program chromium")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "house.html"
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    rs.infer(traces).report(path)
    return path, traces


@pytest.fixture
def page(house):
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
        page.on("request", lambda request: page.complaints.append(request.url))
        yield page
        browser.close()


def lit(page, kind):
    states = page.eval_on_selector_all(
        f"#{kind} .rs-state.lit", "all => all.map(one => one.dataset.state)"
    )
    return [int(state) for state in states]


def test_stepping_lights_the_states(house, page):
    path, traces = house
    page.goto(path.as_uri())
    assert page.complaints == [path.as_uri()]
    trace = traces[int(page.locator("#trace option").first.inner_text().split(" ")[0])]
    for step in range(len(trace)):
        read = frozenset().union(*trace.labels[1 : step + 1])
        assert lit(page, "transition") == [int("key" in read)]
        assert lit(page, "reward") == [int("toilet" in read)]
        assert f"step {step} of {len(trace) - 1}" in page.locator("#where").inner_text()
        assert trace.actions[step] in page.locator("#moment").inner_text()
        if step % 2:
            page.keyboard.press("ArrowRight")
        elif step < len(trace) - 1:
            page.click("#forward")
    page.keyboard.press("ArrowLeft")
    page.click("#first")
    assert lit(page, "transition") == lit(page, "reward") == [0]
    assert page.locator("#moment .wrong").count() == 0


def test_a_mismatch_is_red(house, page, tmp_path):
    _, traces = house
    unlocked = rs.Trace(
        ["corridor", "corridor", "cyanroom"], [[], [], ["toilet"]], ["down", "up"], [0, 0]
    )
    pair, new = rs.infer(traces).machines, rs.TraceSet([unlocked])
    write_report(tmp_path / "wrong.html", pair, new, gather(pair, new))
    page.goto((tmp_path / "wrong.html").as_uri())
    assert page.locator("#moment .wrong").all_inner_texts() == [
        "then sees\ncyanroom\npredicted corridor"
    ]


def test_hostile_names_do_nothing(page, tmp_path):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    trace = rs.Trace([evil, evil + "2", evil], [None, evil, None], [evil, evil + "3"], [0, 1])
    rs.infer(rs.TraceSet([trace])).report(tmp_path / "evil.html")
    page.goto((tmp_path / "evil.html").as_uri())
    assert page.complaints == [(tmp_path / "evil.html").as_uri()]
    assert page.locator("img").count() == 0
    assert evil in page.locator("#moment").inner_text()
