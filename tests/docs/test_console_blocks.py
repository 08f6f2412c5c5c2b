"""The commands of README.md and of all pages run as printed."""

import doctest
import re
import shlex

import pytest

from pages import PAGES, ROOT, blocks, commands, console_lines
from resolvent.cli import main

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# tests/cli/test_cli_reproduce.py runs a smaller one.
TAKES_MINUTES = ["resolvent", "reproduce", "--quick"]
SHOWING = [page for page in PAGES if console_lines(page)]


def test_readme_and_pages_contain_commands():
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


def test_the_environment_of_a_page_is_collected_as_printed(tmp_path, monkeypatch, capsys):
    page = "docs/how-to/bring-your-own-environment.md"
    lines = [line for block in blocks(page, "text") for line in block.splitlines()]
    printed = [shlex.split(line)[2:] for line in lines if " my_vault:Vault " in line]
    assert len(printed) == 3
    source = [example.source for example in doctest.DocTestParser().get_examples(PAGES[page])]
    (vault,) = [number for number, text in enumerate(source) if text.startswith("class Vault")]
    (tmp_path / "my_vault.py").write_text("".join(source[: vault + 1]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for words in printed:
        on = words.index("--on") if "--on" in words else len(words)
        words[words.index("-n") + 1] = "20"
        alone = words[:on] + words[on + 2 :]  # the same episodes, whoever plays them
        assert main(alone) == 0, (words, capsys.readouterr().err)
