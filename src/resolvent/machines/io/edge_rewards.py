"""Reward machines with rewards on their edges, guarded by formulas, as those of Toro Icarte et al.

A label determines the next state and the reward. A `RewardMachine` predicts the reward from the
state, the observation and the action, and so is more expressive; `from_pair` converts it where
the reward follows from state and label alone. There is no conversion back.

A text file has the initial state, a list of terminal states, and one edge a line::

    0    # initial state
    [2]  # terminal states
    (0,0,'!coffee',ConstantRewardFunction(0))
    (0,1,'coffee&!plant',ConstantRewardFunction(0))

The code of Toro Icarte et al. evaluates each line as Python; here it is only parsed. In files
without the second line, as of their earlier code, a state without edges except a `True` loop is
terminal.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resolvent._util.files import atomic_write, read_content
from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError
from resolvent.machines.io.guards import Guard, check_proposition
from resolvent.machines.machine_set import Machines
from resolvent.machines.memory import UNSEEN
from resolvent.preprocess.samples import rounded
from resolvent.preprocess.timing import labels_read
from resolvent.traces.symbols import Label, as_label, label_order, label_text
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes

ENDED: Final = -1  # state after a label without an edge: the episode is over
MAX_TERMS: Final = 4096  # maximum number of terms in all guards together
MAX_TERM_TABLE: Final = 20_000_000  # maximum number of terms times propositions
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


@dataclass(frozen=True)
class Edge:
    """The target and reward for all labels for which a guard holds."""

    source: int
    target: int
    guard: Guard
    reward: float
    origin: str = field(default="", compare=False, repr=False)
    """Name in error messages, such as "line 3"."""


@dataclass(frozen=True)
class EdgeRewardMachine:
    """A reward machine with rewards on its edges, guarded by formulas over propositions.

    A pair of states may have several edges. Two edges that leave a state and hold for the same
    label must have the same target and reward.

    >>> edges = (Edge(0, 0, Guard.parse("!coffee"), 0), Edge(0, 1, Guard.parse("coffee"), 1))
    >>> machine = EdgeRewardMachine(0, frozenset({1}), edges)
    >>> machine.step(0, set()), machine.step(0, {"coffee", "mail"})
    ((0, 0.0), (1, 1.0))
    """

    initial: int
    terminal: frozenset[int]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        terms = sum(len(edge.guard.terms) for edge in self.edges)
        if terms > MAX_TERMS or terms * len(self.propositions) > MAX_TERM_TABLE:
            raise ModelError(
                f"the guards have {terms:,} terms over {len(self.propositions):,} propositions, "
                f"more than can be compared: use fewer"
            )
        for source, leaving in self._leaving.items():
            if source in self.terminal:
                raise ModelError(
                    f"{leaving[0][0]} leaves state {source}, which is terminal: remove one of the "
                    f"two"
                )
            if ENDED in (self.initial, source):
                raise ModelError(f"{ENDED} stands for an ended episode: number states from 0")
            for name, edge in leaving:
                if not math.isfinite(edge.reward):
                    raise ModelError(f"{name} has the reward {edge.reward}: make it finite")
            _check_agreement(leaving)

    @cached_property
    def states(self) -> frozenset[int]:
        """All states of edges, the initial and terminal ones included."""
        ends = (state for edge in self.edges for state in (edge.source, edge.target))
        return frozenset((self.initial, *self.terminal, *ends))

    @cached_property
    def propositions(self) -> frozenset[str]:
        """All propositions of the guards."""
        return frozenset().union(*(edge.guard.propositions for edge in self.edges))

    def has_ended(self, state: int) -> bool:
        """Return whether the episode is over in a state."""
        return state == ENDED or state in self.terminal

    def step(self, state: int, label: Iterable[str]) -> tuple[int, float]:
        """Return the next state and the reward after a label.

        Where no guard holds, the episode ends in `ENDED` with reward 0, as for the plants of the
        office world, which have no edge.
        """
        if self.has_ended(state):
            raise ModelError(f"state {state} is terminal: nothing is read in it")
        if state not in self.states:
            raise ModelError(f"state {state} does not exist: the states are {sorted(self.states)}")
        symbols = as_label(label)
        for _, edge in self._leaving.get(state, ()):
            if edge.guard.holds(symbols):
                return edge.target, float(edge.reward)
        return ENDED, 0.0

    def save(self, path: str | Path) -> None:
        """Write a reward-machine file, whole or not at all; `read_reward_machine` reads it."""
        data = encode_reward_machine(self)
        with atomic_write(path) as file:
            file.write(data)

    @classmethod
    def from_pair(cls, pair: Machines, traces: TraceSet) -> "EdgeRewardMachine":
        """Return the Reward Machine of a set of machines with its rewards on the edges.

        `traces` are those of its inference; they give the reward of each state and label. A
        label whose step always ended the episode, or was never followed by one, leads to an added
        terminal state. Labels that were not observed in a state have no edge.

        >>> import resolvent as rs
        >>> from resolvent.worlds import House
        >>> traces = rs.collect(House(goal="cyanroom"), episodes=200, seed=0)
        >>> machine = EdgeRewardMachine.from_pair(rs.infer(traces).machines, traces)
        >>> machine.step(0, {"key"}), machine.step(0, {"toilet"})
        ((0, 0.0), (1, 1.0))

        Raises:
            ModelError: when the reward depends on more than state and label.
        """
        reward, states = pair.reward, _states_before_steps(pair, traces)
        # Without a lag, the label read after a step is that of the observation it led to.
        read = traces.after_step(traces.label_codes)
        keys, first, case = np.unique(
            states.astype(np.int64) * len(traces.labels) + read,
            return_index=True,
            return_inverse=True,
        )
        rewards = np.array(rounded(traces.rewards, reward.digits))[traces.reward_codes]
        differs = rewards != rewards[first][case]
        if np.any(differs):
            row = int(np.argmax(differs))
            raise _not_a_function(traces, rewards, int(states[row]), (int(first[case[row]]), row))
        goes_on = np.ones(traces.steps, bool)
        goes_on[traces.offsets[1:] - 1] = ~traces.terminated
        always_ends = np.bincount(case, goes_on) == 0
        labels_of: dict[tuple[int, int, float], list[Label]] = {}
        for key, ends, amount in zip(keys.tolist(), always_ends, rewards[first], strict=True):
            source, code = divmod(key, len(traces.labels))
            label = traces.labels[code]
            target = UNSEEN if ends else reward.step(source, label)
            state = reward.states if target is UNSEEN else target  # the added terminal state
            labels_of.setdefault((source, state, float(amount)), []).append(label)
        names = (label for labels in labels_of.values() for label in labels)
        return cls.of_labels(
            labels_of, frozenset[str]().union(*names), reward.states, initial=int(states[0])
        )

    @classmethod
    def of_labels(
        cls,
        labels_of: Mapping[tuple[int, int, float], Iterable[Label]],
        names: frozenset[str],
        end: int,
        *,
        initial: int = 0,
    ) -> "EdgeRewardMachine":
        """Return a machine, given the labels of each edge (source, target, reward).

        Guards are over the propositions `names`. `end` is terminal if an edge leads there.
        """
        edges = tuple(
            Edge(source, target, Guard.exactly(sorted(labels, key=label_order), names), reward)
            for (source, target, reward), labels in sorted(labels_of.items())
        )
        return cls(initial, frozenset({end} & {edge.target for edge in edges}), edges)

    @cached_property
    def _leaving(self) -> dict[int, list[tuple[str, Edge]]]:
        """The edges that leave each state, with their names in errors."""
        leaving: dict[int, list[tuple[str, Edge]]] = {}
        for number, edge in enumerate(self.edges):
            name = edge.origin or f"edge {number}"
            leaving.setdefault(edge.source, []).append((name, edge))
        return leaving


def _check_agreement(leaving: list[tuple[str, Edge]]) -> None:
    """Raise `ModelError` for two edges that hold for the same label and disagree.

    Terms exclude each other by a proposition that one requires and the other forbids.
    """
    edges = [edge for _, edge in leaving]
    terms = [(place, term) for place, edge in enumerate(edges) for term in edge.guard.terms]
    names = sorted(frozenset().union(*(edge.guard.propositions for edge in edges)))
    column = {name: at for at, name in enumerate(names)}
    required, forbidden = np.zeros((2, len(terms), len(names)), np.float32)
    for row, (_, term) in enumerate(terms):
        required[row, [column[name] for name in term.required]] = 1
        forbidden[row, [column[name] for name in term.forbidden]] = 1
    excludes = required @ forbidden.T > 0
    numbers: dict[tuple[int, float], int] = {}
    outcomes = ((edges[place].target, edges[place].reward) for place, _ in terms)
    outcome = [numbers.setdefault(outcome, len(numbers)) for outcome in outcomes]
    differs = np.not_equal.outer(outcome, outcome)
    pairs = np.argwhere(np.triu(differs & ~excludes & ~excludes.T)).tolist()
    if not pairs:
        return
    one, two = min(pairs, key=lambda pair: [terms[row][0] for row in pair])
    (name, edge), (second_name, second) = leaving[terms[one][0]], leaving[terms[two][0]]
    label = terms[one][1].required | terms[two][1].required
    raise ModelError(
        f"{name} and {second_name} both hold in state {edge.source} for the label "
        f"{short(repr(label_text(label)))} and disagree: "
        f"'{short(str(edge.guard))}' leads to {edge.target} with reward {edge.reward:g}, "
        f"'{short(str(second.guard))}' to {second.target} with {second.reward:g}; make one formula "
        f"exclude the other"
    )


def _states_before_steps(pair: Machines, traces: TraceSet) -> Codes:
    """Return the state of the Reward Machine before each step; all have to be known."""
    if not len(traces):
        raise ModelError("there are no traces: give those the machines were inferred from")
    if pair.timing.lag:
        raise ModelError(
            "the machines read labels one step late, but the reward of an edge belongs to the "
            "label that the step leads to: infer them with timing 'current'"
        )
    read = labels_read(traces, pair.timing)
    states = pair.reward.replay(read, traces.offsets, traces.labels)
    if np.any(states < 0):
        trace, step = traces.locate(int(np.argmax(states < 0)))
        raise ModelError(
            f"trace {trace}, step {step}: the reward machine has not seen the labels before it: "
            f"give the traces it was inferred from"
        )
    starts = states[traces.offsets[:-1]]
    if differing := int(np.argmax(starts != starts[0])):
        raise ModelError(
            f"trace 0 starts in state {starts[0]} of the reward machine and trace {differing} in "
            f"state {starts[differing]}, because their first labels differ: a machine with rewards "
            f"on its edges starts in one state"
        )
    return states


def _not_a_function(
    traces: TraceSet, rewards: NDArray[np.float64], state: int, rows: tuple[int, int]
) -> ModelError:
    label = traces.labels[int(traces.after_step(traces.label_codes)[rows[0]])]
    first, second = (
        "{:g} in trace {}, step {}".format(rewards[row], *traces.locate(row)) for row in rows
    )
    return ModelError(
        f"in state {state} of the reward machine the label {label_text(label)!r} has the reward "
        f"{first}, and {second}: the reward depends on observation and action too, which a machine "
        f"with rewards on its edges cannot express; give each rewarded event its own label"
    )


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


def encode_reward_machine(machine: EdgeRewardMachine) -> bytes:
    """Return the file that `EdgeRewardMachine.save` writes; equal machines give equal bytes."""
    for name in sorted(machine.propositions):
        check_proposition(name)
    lines = [
        f"{machine.initial}  # initial state",
        f"{sorted(machine.terminal)}  # terminal states",
    ]
    for edge in machine.edges:
        formula, reward = _quoted(str(edge.guard)), float(edge.reward)
        amount = str(int(reward)) if reward.is_integer() and abs(reward) < 1e15 else repr(reward)
        lines.append(f"({edge.source},{edge.target},{formula},{_CONSTANT}({amount}))")
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


class _Line(NamedTuple):
    number: int
    text: str

    def parse(self, form: re.Pattern[str], meaning: str) -> re.Match[str]:
        """Match the whole line, or raise an error that says what the line should be."""
        if match := form.fullmatch(self.text):
            return match
        raise self.error(f"{short(self.text.strip())!r} cannot be read: {meaning}")

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
