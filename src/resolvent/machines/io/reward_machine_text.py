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
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from resolvent._util.files import atomic_write, read_content
from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.machines.io.edge_rewards import Edge, EdgeRewardMachine, Guard, check_proposition

_MAX_BYTES = 16 << 20
_CONSTANT = "ConstantRewardFunction"

_END = r"\s*(?:\#.*)?"
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BLANK_LINE = re.compile(_END)
_INITIAL_LINE = re.compile(rf"\s*(\d{{1,9}}){_END}")
_TERMINAL_LINE = re.compile(rf"\s*\[((?:\s*+\d{{1,9}}\s*+(?:,|(?=\])))*)\s*\]{_END}")
_EDGE_LINE = re.compile(
    rf"""\s*\(\s*(?P<source>\d{{1,9}})\s*,\s*(?P<target>\d{{1,9}})\s*,
    \s*(?P<formula>'[^'\\]*'|"[^"\\]*")\s*,
    \s*(?P<function>\w+)\s*\((?P<argument>[^()]*)\)\s*\){_END}""",
    re.VERBOSE,
)
_INITIAL = "the first line is the initial state, such as 0"
_TERMINAL = "the second line lists the terminal states, such as [2] or []"
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
    data = read_content(path)
    if len(data) > _MAX_BYTES:
        raise ModelError(f"{path} is larger than {_MAX_BYTES >> 20} MiB: not a reward machine")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not UTF-8 text: not a reward machine") from None
    lines = [_Line(number, line.rstrip()) for number, line in enumerate(text.split("\n"), 1)]
    try:
        return _machine([line for line in lines if not _BLANK_LINE.fullmatch(line.text)])
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
    if len(data) > _MAX_BYTES:
        raise ModelError(f"the file would be larger than {_MAX_BYTES >> 20} MiB")
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


class _Line(NamedTuple):
    number: int
    text: str

    def parse(self, form: re.Pattern[str], meaning: str) -> re.Match[str]:
        """Match the whole line, or raise an error that says what the line should be."""
        match = form.fullmatch(self.text)
        if match is None:
            raise self.error(f"{short(self.text.strip())!r} cannot be read: {meaning}")
        return match

    def error(self, reason: str) -> ModelError:
        """Return an error that names the line."""
        return ModelError(f"line {self.number}: {reason}")


def _machine(lines: Sequence[_Line]) -> EdgeRewardMachine:
    if not lines:
        raise ModelError(f"line 1: the file is empty; {_INITIAL}")
    first, *rest = lines
    initial = int(first.parse(_INITIAL_LINE, _INITIAL)[1])
    terminal = None
    if rest and rest[0].text.lstrip().startswith("["):
        listed = rest.pop(0).parse(_TERMINAL_LINE, _TERMINAL)[1]
        terminal = frozenset(int(state) for state in listed.split(",") if state.strip())
    edges = [_edge(line) for line in rest]
    if not edges:
        raise lines[-1].error(f"no edge comes after it: {_EDGE}")
    if terminal is None:
        terminal = _dead_ends(edges)
    leaving = tuple(edge for edge in edges if edge.source not in terminal)
    return EdgeRewardMachine(initial, terminal, leaving)


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


def _edge(line: _Line) -> Edge:
    parts = line.parse(_EDGE_LINE, _EDGE)
    if parts["function"] != _CONSTANT:
        raise line.error(
            f"the reward is {short(parts['function'])}(…), which depends on more than the label: "
            f"only {_CONSTANT} can be read"
        )
    argument = parts["argument"].strip()
    if not re.fullmatch(_NUMBER, argument) or not math.isfinite(float(argument)):
        raise line.error(f"the reward is {short(argument)!r}: give a finite number")
    try:
        guard = Guard.parse(parts["formula"][1:-1])
    except ModelError as error:
        raise line.error(str(error)) from error
    reward = float(argument) + 0.0
    source, target = int(parts["source"]), int(parts["target"])
    return Edge(source, target, guard, reward, origin=f"line {line.number}")
