"""Write numbers and texts in words that are easy to read and safe to show; read docstrings."""

import inspect
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable
from math import exp, floor, log
from typing import Any, TypeVar


def amount(number: int, noun: str) -> str:
    """Write a number of things, with thousands separators."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """Write a share in percent; only 1 is written as 100%."""
    return ">99%" if 0.99 < share < 1 else "<1%" if 0 < share < 0.01 else f"{share:.0%}"


def odds_text(log_odds: float) -> str:
    """Write a likelihood ratio, given its logarithm."""
    if -log(1000) < log_odds < log(1000):
        return f"{exp(log_odds):.2g} times as likely"
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    power = str(floor(log_odds / log(10) + 0.5)).translate(raised)
    return f"10{power}{'' if log_odds < 0 else ' times'} as likely"


def visible(text: str) -> str:
    """Escape invisible characters, and marks of the direction of writing, as Python does."""
    return text if text.isprintable() else "".join(map(_visible_character, text))


def short(text: str, most: int = 120) -> str:
    """Escape a text for messages, and shorten the middle of a long one."""
    safe = visible(text)
    half = (most - 1) // 2
    return safe if len(safe) <= most else f"{safe[:half]}…{safe[-half:]}"


def listed(names: Iterable[str], between: str = ", ") -> str:
    """Write names chosen by users, separated, each as `short` does."""
    return between.join(map(short, names))


def _visible_character(character: str) -> str:
    hidden = unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"
    return character.encode("unicode_escape").decode() if hidden else character


# --- Docstrings ----------------------------------------------------------------------------------

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])

_LIST = re.compile(r"^(?:Args|Attributes):\n((?:(?: {4}.*)?\n?)+)", re.MULTILINE)


def descriptions(described: Any) -> dict[str, str]:
    """Return the description of each parameter or attribute that a docstring lists."""
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
        texts = descriptions(source) | descriptions(function)
        wrapper = textwrap.TextWrapper(
            96,
            initial_indent="    ",
            subsequent_indent="        ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        names = [name for name in inspect.signature(function).parameters if name in texts]
        lines = "".join(f"{wrapper.fill(f'{name}: {texts[name]}')}\n" for name in names)
        text = inspect.getdoc(function) or ""
        function.__doc__ = _LIST.sub(lambda _: f"Args:\n{lines}\n", text, count=1)
        return function

    return add_to
