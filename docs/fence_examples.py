"""A Griffe extension: the examples of docstrings, fenced so that Markdown shows them as code."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
_BLANK = re.compile(r"^<BLANKLINE>$", re.MULTILINE)


def fenced(text: str) -> str:
    r"""Put each paragraph that begins with a prompt into a fence.

    >>> fenced("Adds.\n\n>>> 1 + 1\n2")
    'Adds.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """

    def block(match: re.Match[str]) -> str:
        return f"```pycon\n{_BLANK.sub('', match[0]).rstrip()}\n```\n"

    return _EXAMPLE.sub(block, text).rstrip("\n")


class FenceExamples(griffe.Extension):
    """Fences the examples of every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **more: Any) -> None:
        """Change the docstring of an object in place."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
