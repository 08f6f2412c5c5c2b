"""The pages that users read: README.md and docs/, as text and as the code blocks in them."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
}


def blocks(page, language):
    """The fenced blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)


def console_lines(page):
    return [line for block in blocks(page, "console") for line in block.splitlines()]


def commands(page):
    """The words of each command of a page, as the shell would split them."""
    lines = (line.removeprefix("$ ") for line in console_lines(page))
    return [shlex.split(line, comments=True) for line in lines]
