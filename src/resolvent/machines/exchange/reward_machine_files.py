"""Reward-machine text files ↔ `EdgeRewardMachine`.

The format is that of the code of Toro Icarte et al., "Reward Machines": the
initial state, a list of terminal states, and one edge a line::

    0    # initial state
    [2]  # terminal states
    (0,0,'!coffee',ConstantRewardFunction(0))
    (0,1,'coffee&!plant',ConstantRewardFunction(0))

Their code runs each line as Python; here it is only read. Files without the
second line, as their earlier code has them, are read too: there a state ends the
episode that no edge leaves but a `True` loop.
"""

import math
import re
from pathlib import Path
from typing import NoReturn

from resolvent._util.files import atomic_write
from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.machines.exchange.edge_rewards import Edge, EdgeRewardMachine
from resolvent.machines.exchange.guards import Guard, check_proposition

_MOST_BYTES = 16 << 20
_CONSTANT = "ConstantRewardFunction"
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
            |(?P<string>'[^'\\]*'|"[^"\\]*")
            |(?P<name>[^\W\d]\w*)
            |(?P<sign>[][(),])
            |(?P<end>(?:\#.*)?$))""",
    re.VERBOSE,
)
_STATE = re.compile(r"-?\d{1,9}")
_INITIAL = "the first line is the initial state, such as 0"
_LIST = "the second line lists the terminal states, such as [2] or []"
_EDGE = f"an edge is written (0,1,'coffee&!plant',{_CONSTANT}(1))"


def read_reward_machine(path: str | Path) -> EdgeRewardMachine:
    r"""Read a reward-machine file; nothing in it is ever run.

    Several edges may join a pair of states. Blank lines and comments are passed over.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "coffee.txt"
    >>> lines = ["0", "[1]", "(0,0,'!c',ConstantRewardFunction(0))"]
    >>> _ = path.write_text("\n".join([*lines, "(0,1,'c',ConstantRewardFunction(1))"]))
    >>> read_reward_machine(path).step(0, {"c"})
    (1, 1.0)

    Raises:
        ModelError: when the file cannot be read, pays by anything but a constant,
            or has two edges that hold for the same label and disagree.
    """
    check_arguments(read_reward_machine, locals())
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except OSError as error:
        raise ModelError(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error
    if len(data) > _MOST_BYTES:
        raise ModelError(f"{path} is larger than {_MOST_BYTES >> 20} MiB: not a reward machine")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not UTF-8 text: not a reward machine") from None
    lines = [_Line(number, text) for number, text in enumerate(text.split("\n"), 1)]
    try:
        return _machine([line for line in lines if not line.is_blank])
    except ModelError as error:
        raise ModelError(f"{path}, {error}") from error


def write_reward_machine(machine: EdgeRewardMachine, path: str | Path) -> None:
    """Write a reward-machine file, whole or not at all; the same machine gives the same bytes."""
    data = encode_reward_machine(machine)
    with atomic_write(path) as file:
        file.write(data)


def encode_reward_machine(machine: EdgeRewardMachine) -> bytes:
    """Return the file that `write_reward_machine` writes."""
    for name in sorted(machine.propositions):
        check_proposition(name)
    lines = [
        f"{machine.initial}  # initial state",
        f"{sorted(machine.terminal)}  # terminal states",
    ]
    for edge in machine.edges:
        formula, reward = _quoted(str(edge.guard)), _number(float(edge.reward))
        lines.append(f"({edge.source},{edge.target},{formula},{_CONSTANT}({reward}))")
    data = ("\n".join(lines) + "\n").encode()
    if len(data) > _MOST_BYTES:
        raise ModelError(f"the file would be larger than {_MOST_BYTES >> 20} MiB")
    return data


def _quoted(formula: str) -> str:
    if "'" not in formula:
        return f"'{formula}'"
    if '"' not in formula:
        return f'"{formula}"'
    raise ModelError(
        "the propositions hold both kinds of quotes: rename those with \" or those with '"
    )


def _number(reward: float) -> str:
    """Write a reward that is a whole number without its point.

    >>> _number(1.0), _number(-0.25), _number(1e300)
    ('1', '-0.25', '1e+300')
    """
    return str(int(reward)) if reward.is_integer() and abs(reward) < 1e15 else repr(reward)


def _machine(lines: list["_Line"]) -> EdgeRewardMachine:
    if not lines:
        raise ModelError(f"line 1: the file is empty; {_INITIAL}")
    initial = _single_state(lines[0])
    rest = lines[1:]
    listed = _terminal(rest.pop(0)) if rest and rest[0].starts_with("[") else None
    edges = [_edge(line) for line in rest]
    if not edges:
        lines[-1].fail(f"no edge comes after it: {_EDGE}")
    terminal = _dead_ends(edges) if listed is None else listed
    kept = tuple(edge for edge in edges if edge.source not in terminal)
    return EdgeRewardMachine(initial, terminal, kept)


def _single_state(line: "_Line") -> int:
    line.form = _INITIAL
    state = line.state("the initial state")
    line.finish()
    return state


def _terminal(line: "_Line") -> frozenset[int]:
    line.form = _LIST
    states = []
    line.sign("[")
    while not line.starts_with("]"):
        states.append(line.state("a terminal state or ]"))
        if not line.starts_with("]"):
            line.sign(",")
    line.sign("]")
    line.finish()
    return frozenset(states)


def _dead_ends(edges: list[Edge]) -> frozenset[int]:
    """Return the states that no edge leaves, or only one that always leads back."""
    leaving: dict[int, list[Edge]] = {edge.target: [] for edge in edges}
    for edge in edges:
        leaving.setdefault(edge.source, []).append(edge)
    always = Guard.parse("True")
    return frozenset(
        state
        for state, those in leaving.items()
        if all(edge.target == state and edge.guard == always for edge in those)
    )


def _edge(line: "_Line") -> Edge:
    line.sign("(")
    source = line.state("the state it leaves")
    line.sign(",")
    target = line.state("the state it leads to")
    line.sign(",")
    formula = line.take("string", "a formula in quotes")[1:-1]
    line.sign(",")
    function = line.take("name", f"{_CONSTANT}(…)")
    if function != _CONSTANT:
        line.fail(
            f"the reward is {short(function)}(…), which depends on more than the label: only "
            f"{_CONSTANT} can be read"
        )
    line.sign("(")
    reward = float(line.take("number", "the reward, a number"))
    line.sign(")")
    line.sign(")")
    line.finish()
    if not math.isfinite(reward):
        line.fail(f"the reward is {reward}; rewards must be finite")
    try:
        guard = Guard.parse(formula)
    except ModelError as error:
        line.fail(str(error))
    return Edge(source, target, guard, reward + 0.0, origin=f"line {line.number}")


class _Line:
    """One line as tokens, taken from left to right."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.form = _EDGE
        self._text = text.rstrip()
        self._at = 0

    @property
    def is_blank(self) -> bool:
        """Whether it holds nothing but a comment."""
        return self._next()[0] == "end"

    def starts_with(self, sign: str) -> bool:
        """Whether the next token is this sign."""
        return self._next()[1] == sign

    def sign(self, sign: str) -> None:
        """Take a bracket or a comma."""
        if not self.starts_with(sign):
            self._expected(repr(sign))
        self._at = self._next()[2]

    def take(self, kind: str, what: str) -> str:
        """Take a token of a kind; errors call it `what`."""
        found, text, end = self._next()
        if found != kind:
            self._expected(what)
        self._at = end
        return text

    def state(self, what: str) -> int:
        """Take a state's number."""
        text = self.take("number", what)
        if not _STATE.fullmatch(text):
            self.fail(f"{short(text)} is no state: number them 0, 1, 2, …")
        return int(text)

    def finish(self) -> None:
        """Refuse anything that is left but a comment."""
        if self._next()[0] != "end":
            self._expected("the end of the line")

    def fail(self, reason: str) -> NoReturn:
        """Raise an error that names the line."""
        raise ModelError(f"line {self.number}: {reason}")

    def _next(self) -> tuple[str, str, int]:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            return "other", self._text[self._at :].strip(), self._at
        return match.lastgroup, match[match.lastgroup], match.end()

    def _expected(self, what: str) -> NoReturn:
        kind, text, _ = self._next()
        found = "the line ends" if kind == "end" else f"found {text[:40]!r}"
        self.fail(f"expected {what}, but {found}; {self.form}")
