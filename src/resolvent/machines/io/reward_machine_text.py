"""Reward-machine text files ↔ `EdgeRewardMachine`.

The format is that of the code of Toro Icarte et al., "Reward Machines": the
initial state, a list of terminal states, and one edge a line::

    0    # initial state
    [2]  # terminal states
    (0,0,'!coffee',ConstantRewardFunction(0))
    (0,1,'coffee&!plant',ConstantRewardFunction(0))

Their code evaluates each line as Python; here it is only parsed. In files without the second
line, the format of their earlier code, a state without edges except a `True` loop is terminal.
"""

import math
import re
from pathlib import Path
from typing import NoReturn

from resolvent._util.files import atomic_write
from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.machines.io.edge_rewards import Edge, EdgeRewardMachine
from resolvent.machines.io.guards import Guard, check_proposition

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
    r"""Read a reward-machine file without running any of it.

    Several edges may join a pair of states. Blank lines and comments are skipped.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "coffee.txt"
    >>> lines = ["0", "[1]", "(0,0,'!c',ConstantRewardFunction(0))"]
    >>> _ = path.write_text("\n".join([*lines, "(0,1,'c',ConstantRewardFunction(1))"]))
    >>> read_reward_machine(path).step(0, {"c"})
    (1, 1.0)

    Raises:
        ModelError: when the file cannot be read, has a reward that is not a constant,
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
    """Write a reward, an integral one without its decimal point.

    >>> _number(1.0), _number(-0.25), _number(1e300)
    ('1', '-0.25', '1e+300')
    """
    return str(int(reward)) if reward.is_integer() and abs(reward) < 1e15 else repr(reward)


def _machine(lines: list["_Line"]) -> EdgeRewardMachine:
    if not lines:
        raise ModelError(f"line 1: the file is empty; {_INITIAL}")
    first = lines[0]
    first.form = _INITIAL
    initial = first.state("the initial state")
    first.finish()
    rest = lines[1:]
    terminal = _terminal(rest.pop(0)) if rest and rest[0].starts_with("[") else None
    edges = [_edge(line) for line in rest]
    if not edges:
        lines[-1].fail(f"no edge comes after it: {_EDGE}")
    if terminal is None:
        terminal = _dead_ends(edges)
    leaving = tuple(edge for edge in edges if edge.source not in terminal)
    return EdgeRewardMachine(initial, terminal, leaving)


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
        for state, edges in leaving.items()
        if all(edge.target == state and edge.guard == always for edge in edges)
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
    """One line as tokens, read from left to right."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.form = _EDGE
        self._text = text.rstrip()
        self._at = 0

    @property
    def is_blank(self) -> bool:
        """Whether the line is empty except for a comment."""
        return self._next()[0] == "end"

    def starts_with(self, sign: str) -> bool:
        """Return whether the next token is this sign."""
        return self._next()[1] == sign

    def sign(self, sign: str) -> None:
        """Consume a bracket or a comma."""
        if not self.starts_with(sign):
            self._expected(repr(sign))
        self._at = self._next()[2]

    def take(self, kind: str, name: str) -> str:
        """Consume a token of a kind; errors call it `name`."""
        next_kind, text, end = self._next()
        if next_kind != kind:
            self._expected(name)
        self._at = end
        return text

    def state(self, name: str) -> int:
        """Consume the number of a state."""
        text = self.take("number", name)
        if not _STATE.fullmatch(text):
            self.fail(f"{short(text)} is no state: number them 0, 1, 2, …")
        return int(text)

    def finish(self) -> None:
        """Refuse further tokens."""
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

    def _expected(self, name: str) -> NoReturn:
        kind, text, _ = self._next()
        actual = "the line ends" if kind == "end" else f"found {text[:40]!r}"
        self.fail(f"expected {name}, but {actual}; {self.form}")
