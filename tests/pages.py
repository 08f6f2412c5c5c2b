"""The pages that users read: README.md and docs/, as text and as the code blocks in them."""

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
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


def missing_packages(script):
    """The packages that a script imports and that are not installed, in order."""
    names = set()
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.partition(".")[0])
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


def run_script(path, folder):
    """Run a script in a folder; PyTorch on one thread, since more are in each other's way."""
    return subprocess.run(
        [sys.executable, path],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def console_lines(page):
    return [line for block in blocks(page, "console") for line in block.splitlines()]


def commands(page):
    """The words of each command of a page, as the shell would split them."""
    lines = (line.removeprefix("$ ") for line in console_lines(page))
    return [shlex.split(line, comments=True) for line in lines]
