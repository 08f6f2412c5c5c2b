"""Names that try to become markup, in a real browser: they stay text, and nothing runs."""

import numpy as np
import pytest

import resolvent as rs
from resolvent.control.curve import Curve
from resolvent.display.report import write_report
from resolvent.evidence import gather

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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_inert(name, opened, tmp_path):
    evil = HOSTILE[name]
    traces = rs.TraceSet(
        [
            rs.Trace([evil, f"{evil}2", f"{evil}{end}"], [None, label, None], [evil, "go"], [0, 1])
            for label, end in ((evil, "3"), (f"{evil}!", "4"))
        ]
    )
    pair = rs.infer(traces).machines
    situation = (("observation", evil), (evil, 1))
    one = np.ones(1)
    learned = rs.Learned(
        np.ones((1, 1)),
        (situation,),
        Curve(one, one, np.ones(1, np.int64), one),
        0.95,
        action_names=(evil,),
    )
    path = tmp_path / "report.html"
    write_report(path, pair, traces, gather(pair, traces), learned=learned)
    page = opened(path)
    plain = page.evaluate(
        "() => ({ran: window.ran, img: document.images.length, scripts: document.scripts.length,"
        " styles: document.querySelectorAll('style').length,"
        " drawings: document.querySelectorAll('svg').length,"
        " handlers: [...document.querySelectorAll('*')].filter(one => [...one.attributes]"
        ".some(a => a.name.startsWith('on') || /javascript:/.test(a.value))).length})"
    )
    assert plain == {
        "ran": None, "img": 0, "scripts": 2, "styles": 3, "drawings": 2, "handlers": 0
    }  # fmt: skip
    assert page.locator("#summary").is_visible()
    shown = page.evaluate("() => document.body.innerText")
    assert not set("\u202e\u2066\u0000\u0007\u2028") & set(shown)
    if name not in ("turned", "hidden", "long"):
        assert evil in page.locator("#moment").inner_text()
        assert evil in page.locator("#learning").inner_text()
    width = page.evaluate("() => document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]
    page.click("#forward")
    assert page.locator("#moment b").count() == 6


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
    said = [one for one in page.complaints if one.startswith("said ")]
    assert len(said) >= 3
    assert all("Content Security Policy" in one for one in said)
    page.complaints.clear()


def test_without_scripts_the_machines_are_there(house, opened):
    page = opened(house[0], java_script_enabled=False)
    assert page.locator("#transition svg").bounding_box()["width"] > 150
    assert "need no script" in page.locator("noscript").inner_text()
