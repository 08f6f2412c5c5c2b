"""What a diagnosis consists of: findings, as plain data that reads as a page of text."""

from dataclasses import dataclass, field
from enum import StrEnum
from textwrap import fill
from typing import Any

from resolvent import notebook
from resolvent.wording import amount, short

_WIDTH = 80
_NOTHING = "nothing stands out"


class Severity(StrEnum):
    """How much a finding matters."""

    NOTE = "note"
    """Good to know; machines are not the worse for it."""

    WARNING = "warning"
    """Machines can be inferred, but will fail on fresh traces or mean less than they seem to."""

    ERROR = "error"
    """The traces contradict each other: machines without noise cannot explain them."""


@dataclass(frozen=True)
class Finding:
    """One thing that is remarkable about traces, and what to do about it.

    Attributes:
        kind: A short word that stays the same from version to version, such as "random-start".
        severity: "note", "warning" or "error".
        text: What was found, with figures, and what to do.
        figures: The numbers in the text and some more, as JSON values.

    >>> finding = Finding("no-labels", Severity.NOTE, "No step has a label.", {"positions": 12})
    >>> print(finding)
    note: No step has a label. [no-labels]
    """

    kind: str
    severity: Severity
    text: str
    figures: dict[str, Any] = field(hash=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values.

        >>> Finding("no-labels", Severity.NOTE, "No step has a label.", {}).as_dict()["severity"]
        'note'
        """
        return {
            "kind": self.kind,
            "severity": str(self.severity),
            "text": self.text,
            "figures": self.figures,
        }

    def __str__(self) -> str:
        return f"{self.severity}: {self.text} [{self.kind}]"


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What traces are like, before anything is inferred from them.

    Attributes:
        traces: How many were looked at.
        steps: How many steps these have.
        findings: Errors first, then warnings, then notes.

    >>> print(Diagnosis(3, 12, ()))
    3 traces, 12 steps
    <BLANKLINE>
    nothing stands out
    """

    traces: int
    steps: int
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that matter: warnings and errors."""
        return tuple(one for one in self.findings if one.severity is not Severity.NOTE)

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values, as `resolvent diagnose --json` prints it.

        >>> Diagnosis(3, 12, ()).as_dict()
        {'traces': 3, 'steps': 12, 'findings': []}
        """
        return {
            "traces": self.traces,
            "steps": self.steps,
            "findings": [one.as_dict() for one in self.findings],
        }

    def __repr__(self) -> str:
        kinds = ", ".join(one.kind for one in self.findings) or _NOTHING
        return short(f"Diagnosis({self._size}; {kinds})", 250)

    def _repr_html_(self) -> str:
        """Show the findings in a notebook, in words."""
        return notebook.panel(self._size, *map(notebook.lines, self._told))

    def __str__(self) -> str:
        return "\n\n".join([self._size, *self._told])

    @property
    def _size(self) -> str:
        return f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"

    @property
    def _told(self) -> list[str]:
        return [*map(_filled, self.findings)] or [_NOTHING]


def _filled(finding: Finding) -> str:
    # Names of options have hyphens, and are to be copied whole.
    return fill(str(finding), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
