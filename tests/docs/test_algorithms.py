"""The page about the paper's algorithms: its names exist, and it lists every line."""

import inspect
import re
from contextlib import suppress
from functools import reduce
from importlib import import_module

import pytest

from pages import PAGES, ROOT

PAGE = PAGES["docs/algorithms.md"]
NAMES = sorted(set(re.findall(r"`(resolvent(?:\.\w+)+)`", PAGE)))
SOURCES = sorted(set(re.findall(r"`(src/[\w/]+\.cpp)`", PAGE)))

LINES = {
    "Algorithm 1: overall inference": 5,
    "BuildPTT": 16,
    "StateMerging": 18,
    "Observation Supplement": 8,
}
"""Number of lines of each algorithm, as printed in the paper."""


def resolved(name):
    """Return the object with a full dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        with suppress(ModuleNotFoundError):
            return reduce(getattr, parts[length:], import_module(".".join(parts[:length])))
    raise AssertionError(f"no module holds {name}")


def test_the_page_names_functions():
    assert len(NAMES) > 30
    assert SOURCES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_function_a_class_or_a_method(name):
    value = resolved(name)
    assert inspect.isroutine(value) or inspect.isclass(value)


@pytest.mark.parametrize("path", SOURCES)
def test_every_source_file_exists(path):
    assert (ROOT / path).is_file()


@pytest.mark.parametrize(("heading", "count"), LINES.items())
def test_every_line_of_an_algorithm_is_listed_once(heading, count):
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    listed = []
    for first, last in re.findall(r"^\| (\d+)(?:–(\d+))? \|", section, re.MULTILINE):
        listed += range(int(first), int(last or first) + 1)
    assert listed == list(range(1, count + 1))
