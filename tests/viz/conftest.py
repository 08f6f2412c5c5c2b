"""The report in a real browser: Chromium, started once for each file of tests.

Without a browser these tests are skipped, unless RESOLVENT_BROWSER=required says that
this machine must have one. Each test leaves a picture of where it ended in
artifacts/screenshots.
"""

import os
import re
import shutil
from pathlib import Path

import gymnasium as gym
import pytest
from report_worlds import lamp_machines, lit_wait, with_cost

import resolvent as rs

collect_ignore = ["conftest.py"]  # of doctests, for there is another of that name

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SCREENSHOTS = Path(__file__).parents[2] / "artifacts" / "screenshots"


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        without("no browser here: `make browser` installs Chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        without("no Playwright here: `pip install --group dev` installs it")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


def without(reason):
    if os.environ.get("RESOLVENT_BROWSER") == "required":
        pytest.fail(f"RESOLVENT_BROWSER=required, and {reason}")
    pytest.skip(reason)


@pytest.fixture
def opened(browser, request):
    """Opens a file without a network, in a page that may say, ask for and fetch nothing.

    What it does all the same is in `page.complaints`, which must be empty in the end.
    """
    pages = []

    def open_file(path, fragment="", **options):
        options = {"viewport": {"width": 1280, "height": 900}, **options}
        page = browser.new_context(offline=True, **options).new_page()
        page.complaints = complaints = []
        address = path.as_uri()
        page.on("console", lambda message: complaints.append(f"said {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"failed: {error}"))
        page.on("dialog", lambda dialog: (complaints.append("asked"), dialog.dismiss()))
        page.on("request", lambda one: one.url != address and complaints.append(f"got {one.url}"))
        page.context.on("page", lambda other: complaints.append(f"opened {other.url}"))
        pages.append(page)
        page.goto(address + fragment)
        return page

    yield open_file
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    name = f"{request.path.stem} {request.node.name}".replace("test_", "").replace("_", " ")
    for number, page in enumerate(pages, 1):
        picture = re.sub(r"[^a-z0-9]+", " ", f"{name} {number if len(pages) > 1 else ''}")
        page.evaluate("() => scrollY || document.querySelector('#replay').scrollIntoView()")
        page.screenshot(path=SCREENSHOTS / f"{picture.strip().replace(' ', '-')}.png")
        page.context.close()
    assert [page.complaints for page in pages] == [[] for _ in pages]


def reported(world, episodes, tmp_path_factory):
    path = tmp_path_factory.mktemp(world) / "report.html"
    traces = rs.collect(gym.make(f"resolvent/{world}-v0"), episodes=episodes, seed=0)
    result = rs.infer(traces)
    result.report(path)
    return path, traces, result.machines


@pytest.fixture(scope="session")
def house(tmp_path_factory):
    """The house's report, its traces and its machines."""
    return reported("House", 200, tmp_path_factory)


@pytest.fixture(scope="session")
def wrong(house, tmp_path_factory):
    """A report of traces among which number 3 pays, in its steps 1 and 3, what nobody expects."""
    _, _, pair = house
    calm = rs.Trace(["corridor"] * 2, [[]] * 2, ["down"], [0])
    paid = rs.Trace(["corridor"] * 6, [[]] * 6, ["down"] * 5, [0, 5, 0, 7, 0])
    path = tmp_path_factory.mktemp("wrong") / "report.html"
    rs.report(pair, rs.TraceSet([calm, calm, calm, paid, calm]), path)
    return path


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """The house's report with a third machine: a step costs 1, and 2 once the sofa was seen."""
    path = tmp_path_factory.mktemp("three") / "report.html"
    traces = with_cost(rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0), "sofa")
    result = rs.infer(traces, outputs=["observation", "reward", "cost"])
    result.report(path)
    return path, traces, result.machines


@pytest.fixture(scope="session")
def lamp(tmp_path_factory):
    """A report on two traces of the lamp, each of which asks once what was never asked there."""
    path = tmp_path_factory.mktemp("lamp") / "report.html"
    machines = lamp_machines()
    rs.report(machines, rs.TraceSet([lit_wait(0), lit_wait(5)]), path)
    return path


@pytest.fixture(scope="session")
def grid(tmp_path_factory):
    """A report of the paper's 25×25 world, with its traces and machines."""
    return reported("RandomWorld", 300, tmp_path_factory)
