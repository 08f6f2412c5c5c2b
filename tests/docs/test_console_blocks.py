"""The commands of README.md and of all pages run as printed."""

import re

import pytest

from pages import PAGES, ROOT, commands, console_lines
from resolvent.cli import main

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# tests/cli/test_cli_reproduce.py runs a smaller one.
TAKES_MINUTES = ["resolvent", "reproduce", "--quick"]
SHOWING = [page for page in PAGES if console_lines(page)]


def test_there_are_commands_in_readme_and_in_pages():
    assert {"README.md", "docs/index.md", "docs/tutorial/house.md"} <= set(SHOWING)


@pytest.mark.parametrize("page", SHOWING)
def test_the_commands_of_a_page_run_as_printed(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        if words[0] == "resolvent" and words != TAKES_MINUTES:
            assert main(words[1:]) == 0, (words, capsys.readouterr().err)


@pytest.mark.parametrize("page", SHOWING)
def test_blocks_hold_commands_only(page):
    """Output is for doctests: nobody would compare it here."""
    assert [line for line in console_lines(page) if not line.startswith("$ ")] == []


@pytest.mark.parametrize("page", SHOWING)
def test_make_targets_exist(page):
    for words in commands(page):
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", MAKEFILE, re.MULTILINE), words
