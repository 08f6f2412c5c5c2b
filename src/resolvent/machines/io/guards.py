"""Guards of edges: formulas over propositions, as reward-machine files write them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from resolvent._util.text import short
from resolvent.errors import ModelError
from resolvent.traces.symbols import Label

_CONSTANTS = ("True", "False")
_SYNTAX = "&|()\\"
_LITERAL = re.compile(r"((?:!\s*)*)(.*)", re.DOTALL)


class Term(NamedTuple):
    """One conjunction: the propositions that must be in a label, and those that must not."""

    required: frozenset[str]
    forbidden: frozenset[str]

    def holds(self, label: Label) -> bool:
        """Return whether a label has all required propositions and no forbidden one."""
        return self.required <= label and self.forbidden.isdisjoint(label)

    def __str__(self) -> str:
        names = sorted(self.required | self.forbidden)
        signed = [name if name in self.required else f"!{name}" for name in names]
        return "&".join(signed) or "True"


@dataclass(frozen=True, repr=False)
class Guard:
    """A formula in disjunctive normal form; one without terms holds for no label.

    It is written as in reward-machine files: `a&!b|c` holds for a label with a and without b, and
    for any label with c; `True` holds always and `False` never.

    >>> guard = Guard.parse("e&!n | !g")
    >>> str(guard), guard.holds(frozenset({"e", "g"})), guard.holds(frozenset({"g"}))
    ('e&!n|!g', True, False)
    """

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> "Guard":
        """Read a formula; terms that contradict themselves are dropped, as are repeated ones."""
        terms = (_term(part, text) for part in text.split("|"))
        return cls(tuple(dict.fromkeys(filter(None, terms))))

    @classmethod
    def exactly(cls, labels: Iterable[Label], propositions: Iterable[str]) -> "Guard":
        """Return the guard that holds for exactly these labels over these propositions.

        >>> str(Guard.exactly([frozenset(), frozenset({"key"})], ["key", "sofa"]))
        '!key&!sofa|key&!sofa'
        """
        names = frozenset(propositions)
        return cls(tuple(Term(label, names - label) for label in labels))

    @property
    def propositions(self) -> frozenset[str]:
        """All propositions of the formula."""
        return frozenset().union(*(term.required | term.forbidden for term in self.terms))

    def holds(self, label: Label) -> bool:
        """Return whether some term holds for a label."""
        return any(term.holds(label) for term in self.terms)

    def __str__(self) -> str:
        return "|".join(map(str, self.terms)) or "False"

    def __repr__(self) -> str:
        return f"Guard({str(self)!r})"


def check_proposition(name: str) -> None:
    """Raise `ModelError` for a name that cannot be written in a formula."""
    if name in _CONSTANTS:
        raise ModelError(f"a formula takes the proposition {name!r} for a constant: rename it")
    if (
        not name
        or name != name.strip()
        or name.startswith("!")
        or not name.isprintable()
        or any(sign in name for sign in _SYNTAX)
    ):
        raise ModelError(
            f"a formula cannot hold the proposition {short(repr(name))}: rename it without "
            f"{' '.join(_SYNTAX)}, a leading !, spaces at its ends and control characters"
        )


def _term(text: str, formula: str) -> Term | None:
    """Read a conjunction; None if it holds for no label."""
    names: dict[bool, set[str]] = {True: set(), False: set()}
    possible = True
    for literal in text.split("&"):
        signs, name = _LITERAL.fullmatch(literal.strip()).groups()  # type: ignore[union-attr]
        holds = signs.count("!") % 2 == 0
        if not name:
            raise ModelError(
                f"the formula {short(repr(formula))} lacks a proposition beside one of its signs"
            )
        if name in _CONSTANTS:
            possible &= holds is (name == "True")
            continue
        if "(" in name or ")" in name:
            raise ModelError(
                f"the formula {short(repr(formula))} has parentheses: write terms of & and !, "
                f"joined by |"
            )
        check_proposition(name)
        names[holds].add(name)
    term = Term(frozenset(names[True]), frozenset(names[False]))
    return term if possible and term.required.isdisjoint(term.forbidden) else None
