"""The README's commands run as printed, and its picture is what the package draws.

Its Python examples are doctests, which pytest collects by themselves.
"""

import re
import shlex
from pathlib import Path

import gymnasium as gym

import resolvent as rs
from resolvent.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


COMMANDS = ("collect", "infer", "show", "check", "convert", "plan", "train")
TAKES_MINUTES = ["reproduce", "--quick"]  # tests/cli/test_cli_reproduce.py runs a smaller one


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_commands_run_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("$ ")]
    ours = [words[1:] for words in commands if words[0] == "resolvent"]
    assert {words[0] for words in ours} == {*COMMANDS, TAKES_MINUTES[0]}
    for words in ours:
        if words != TAKES_MINUTES:
            assert main(words) == 0, (words, capsys.readouterr().err)


def test_the_make_targets_exist():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_picture_is_drawn_by_the_package():
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=500, seed=0)
    drawn = rs.to_svg(rs.infer(traces).machines.transition)
    (name,) = re.findall(r"^!\[.*\]\((.*)\)$", README, re.MULTILINE)
    picture = Path(__file__).parent.parent / name
    assert picture.read_text(encoding="utf-8") == drawn
