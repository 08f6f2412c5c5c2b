"""The result of a diagnosis: findings, as plain data that reads as a page of text."""

from dataclasses import dataclass, field
from enum import StrEnum
from textwrap import fill
from typing import Any, Final

from resolvent._util import html as notebook
from resolvent._util.records import to_builtins
from resolvent._util.text import amount, short

_WIDTH: Final = 80  # number of characters in a line
_NO_FINDINGS: Final = "no findings"


class Severity(StrEnum):
    """The severity of a finding."""

    NOTE = "note"
    """Good to know; it does not affect the machines."""

    WARNING = "warning"
    """Machines can be inferred, but will fail on new traces or mean less than they seem to."""

    ERROR = "error"
    """The traces contradict each other: machines without noise cannot explain them."""


@dataclass(frozen=True)
class Finding:
    """One remarkable property of traces, and what to do about it.

    Attributes:
        kind: A short word that stays the same from version to version, such as "random-start".
        severity: "note", "warning" or "error".
        text: The finding, with figures, and what to do.
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
        """Return the finding as JSON values."""
        return to_builtins(self)

    def __str__(self) -> str:
        return f"{self.severity}: {self.text} [{self.kind}]"


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The findings about traces, before anything is inferred from them.

    Attributes:
        traces: Number of traces examined.
        steps: Number of their steps.
        findings: Errors first, then warnings, then notes.

    >>> print(Diagnosis(3, 12, ()))
    3 traces, 12 steps
    <BLANKLINE>
    no findings
    """

    traces: int
    steps: int
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that matter: warnings and errors."""
        return tuple(finding for finding in self.findings if finding.severity is not Severity.NOTE)

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values, as `resolvent diagnose --json` prints it."""
        return to_builtins(self)

    def __repr__(self) -> str:
        kinds = ", ".join(finding.kind for finding in self.findings) or _NO_FINDINGS
        return short(f"Diagnosis({self._size}; {kinds})", 250)

    def _repr_html_(self) -> str:
        """Show the findings in a notebook, as text."""
        return notebook.panel(self._size, *map(notebook.lines, self._paragraphs))

    def __str__(self) -> str:
        return "\n\n".join([self._size, *self._paragraphs])

    @property
    def _size(self) -> str:
        return f"{amount(self.traces, 'trace')}, {amount(self.steps, 'step')}"

    @property
    def _paragraphs(self) -> list[str]:
        return [
            # Names of options have hyphens, and are copied whole.
            fill(str(finding), _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
            for finding in self.findings
        ] or [_NO_FINDINGS]
