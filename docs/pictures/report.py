"""The house's report in a browser → docs/pictures/report.png, which README and pages show.

`python docs/pictures/report.py` takes it anew, where Playwright and Chromium are
installed (`make browser`); look at what comes out.
"""

import shutil
import tempfile
from pathlib import Path

import gymnasium as gym

import resolvent as rs

PICTURE = Path(__file__).with_name("report.png")


def main() -> None:
    """Take the picture of a step in the middle of a trace."""
    from playwright.sync_api import sync_playwright

    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        report = Path(folder) / "house.html"
        rs.infer(traces).report(report)
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page(viewport={"width": 1080, "height": 800}, color_scheme="light")
        page.goto(report.as_uri())
        for _ in range(3):
            page.click("#forward")
        page.evaluate("document.activeElement.blur()")
        page.evaluate("document.querySelector('#replay').scrollIntoView()")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
