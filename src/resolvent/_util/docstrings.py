"""Descriptions of parameters, read from docstrings for the docs and the command line."""

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])

_LIST = re.compile(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?\n?)+)", re.MULTILINE)
_INDENT = " " * 8
_WIDTH = 100


def descriptions(described: Any) -> dict[str, str]:
    """Return the description of each parameter or attribute that a docstring lists.

    >>> descriptions(descriptions)
    {}
    """
    section = _LIST.search(inspect.getdoc(described) or "")
    if section is None:
        return {}
    entries = re.split(r"^(?=\S)", textwrap.dedent(section[1]), flags=re.MULTILINE)
    pairs = (" ".join(entry.split()).partition(": ") for entry in entries if entry.strip())
    return {name: text for name, _, text in pairs}


def described_by(source: Any) -> Callable[[_FunctionT], _FunctionT]:
    """Add the parameters that a function's docstring does not list, as another one lists them."""

    def add_to(function: _FunctionT) -> _FunctionT:
        if function.__doc__ is None:  # as with `python -OO`
            return function
        texts = {**descriptions(source), **descriptions(function)}
        lines = (
            textwrap.fill(
                f"{name}: {texts[name]}",
                _WIDTH,
                initial_indent=_INDENT,
                subsequent_indent=_INDENT + "    ",
                break_on_hyphens=False,
                break_long_words=False,
            )
            for name in inspect.signature(function).parameters
            if name in texts
        )
        text = inspect.getdoc(function) or ""
        arguments = "Args:\n" + textwrap.indent(textwrap.dedent("\n".join(lines)), "    ") + "\n"
        function.__doc__ = _LIST.sub(lambda _: f"{arguments}\n", text, count=1)
        return function

    return add_to
