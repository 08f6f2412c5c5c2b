"""Names that try to become markup, in a real browser: they stay text, and nothing runs."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.rl.q_table import Curve

RAN = "window.ran=(window.ran||0)+1;alert(1)"
HOSTILE = {
    "script": f"</script><script>{RAN}</script>",
    "image": f'"><img src=x onerror="{RAN}">',
    "drawing": f"<svg onload='{RAN}'><text>x</text></svg>",
    "style": "</style><style>*{display:none}</style>",
    "link": f"<a href='javascript:{RAN}'>here</a>",
    "quotes": '"\'`${window.ran=1}`\\"',
    "template": "{{data}}{{script}}",
    "entity": "&lt;img src=x&gt;&#0;",
    "turned": "abc\u202edcba\u2066x",
    "hidden": "a\u0000b\u0007c\u2028d\u200be",
    "long": "x" * 5000,
}


WRITTEN_OUT = ("turned", "hidden", "long")
LOOK = """() => ({
  ran: window.ran ?? 0, images: document.images.length, scripts: document.scripts.length,
  styles: document.querySelectorAll("style").length,
  drawings: document.querySelectorAll("svg").length,
  handlers: [...document.querySelectorAll("*")].filter((one) => [...one.attributes].some(
    ({ name, value }) => name.startsWith("on") || value.startsWith("javascript:"))).length,
  wide: document.documentElement.scrollWidth > innerWidth,
})"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A report in which each name is an observation, a label, an action and part of a policy."""
    names = list(HOSTILE.values())

    def trace(mark, end):
        labels = [None, *(f"{name}{mark}" for name in names)]
        return rs.Trace([*names, end], labels, names, range(len(names)))

    traces = rs.TraceSet([trace("", "one"), trace("!", "other")])
    pair = rs.infer(traces).machines
    assert pair.transition.states > 1
    learned = rs.rl.QTable(
        np.ones((len(names), len(names))),
        tuple((("observation", name), (name, 1)) for name in names),
        Curve(np.ones(1), np.ones(1), np.ones(1, np.int64), np.ones(1)),
        0.95,
        action_names=tuple(names),
    )
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    rs.report(pair, traces, path, returns=[1.0], policy=learned)
    return path


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_names_are_inert(hostile, opened, width):
    page = opened(hostile, viewport={"width": width, "height": 844})
    policy = page.locator("#learning").inner_text()
    # Scripts: the data and ours. Drawings: two machines, two timelines, a curve.
    for name, evil in HOSTILE.items():
        assert page.evaluate(LOOK) == {
            "ran": 0, "images": 0, "scripts": 2, "styles": 3, "drawings": 5, "handlers": 0,
            "wide": False,
        }, name  # fmt: skip
        if name not in WRITTEN_OUT:
            assert page.locator("#moment b").first.inner_text() == evil
            assert evil in policy
        page.keyboard.press("ArrowRight")
    shown = page.evaluate("() => document.body.innerText")
    assert not set("\u202e\u2066\u0000\u0007\u2028") & set(shown)
    assert HOSTILE["long"] not in shown
    page.click("#first")


def test_a_column_with_a_hostile_name_is_inert(opened, tmp_path):
    names = [evil for name, evil in HOSTILE.items() if name != "long"]

    def trace(label, value):
        columns = {name: [0, value] for name in names}
        return rs.Trace(["a"] * 3, [None, label, None], ["go"] * 2, columns=columns)

    traces = rs.TraceSet([trace("one", 1), trace("other", 2)])
    rs.infer(traces, outputs=names).report(tmp_path / "report.html")
    page = opened(tmp_path / "report.html")
    look = page.evaluate(LOOK)
    assert (look["ran"], look["images"], look["scripts"], look["handlers"]) == (0, 0, 2, 0)
    assert not look["wide"]
    page.keyboard.press("ArrowRight")
    assert page.locator(".machines .rs-state.lit").count() == len(names)
    shown = page.locator("#moment").inner_text()
    assert all(evil in shown for name, evil in HOSTILE.items() if name not in WRITTEN_OUT)


def test_what_got_in_could_neither_run_nor_load(house, opened):
    page = opened(house[0])
    refused = []
    page.on("requestfailed", lambda one: refused.append((one.url, one.failure)))
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = 1";
          const box = document.createElement("div");
          box.innerHTML = '<img src="https://example.org/x.png" onerror="window.ran = 2">' +
            '<button id="evil" onclick="window.ran = 3">x</button>';
          document.body.append(script, box);
        }"""
    )
    page.locator("#evil").click()
    assert page.evaluate("() => window.ran") is None
    assert refused == [("https://example.org/x.png", "csp")]
    data = [one for one in page.complaints if one.startswith("said ")]
    assert len(data) >= 3
    assert all("Content Security Policy" in one for one in data)
    page.complaints.clear()


def test_without_scripts_the_machines_are_there(house, opened):
    page = opened(house[0], java_script_enabled=False)
    assert page.locator("#transition svg").bounding_box()["width"] > 150
    assert "need no script" in page.locator("noscript").inner_text()
