"""The README shows every command, and its picture is what the package draws.

Its Python examples are doctests, which pytest collects by themselves; its commands are
run with those of all other pages (`tests/docs/test_console_blocks.py`).
"""

import re

import gymnasium as gym

import resolvent as rs
from pages import PAGES, ROOT, commands
from resolvent.cli import COMMANDS


def test_every_command_is_shown():
    shown = {words[1] for words in commands("README.md") if words[0] == "resolvent"}
    assert shown | {"demo"} == COMMANDS.keys()


def test_the_picture_is_drawn_by_the_package():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    drawn = rs.infer(traces).machines.transition.to_svg()
    (name,) = re.findall(r"^!\[.*\]\((.*\.svg)\)$", PAGES["README.md"], re.MULTILINE)
    assert (ROOT / name).read_text(encoding="utf-8") == drawn
