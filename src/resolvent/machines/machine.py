"""A Dual Behavior Mealy Machine: labels move its state, and each state has outputs for queries.

A query is an observation and an action. All machines are alike except for the column they
predict: the next observation, the reward, or any other. A machine is partial: it replies
`UNSEEN` where the traces show nothing, and distinguishes observed outputs from assumed ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from numbers import Integral
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.math import exp, log2
from resolvent._util.text import visible
from resolvent._util.validation import is_single, shown
from resolvent.errors import ModelError
from resolvent.machines.counts import OutputCounts, Support
from resolvent.machines.knowledge import (
    GENERALIZED_CODE,
    OBSERVED_CODE,
    UNSEEN,
    UNSEEN_CODE,
    Basis,
    MergeDecision,
    State,
    TableEntry,
    machine_name,
)
from resolvent.machines.tables import (
    is_member,
    look_up,
    no_codes,
    no_numbers,
    places,
    shortest_paths,
)
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_numbers


class _Kind:
    """Name of a machine, or of a class of machines, derived from the predicted column."""

    def __get__(self, machine: "Machine | None", owner: "type[Machine]") -> str:
        return machine_name(owner.predicts if machine is None else machine.predicts)


@dataclass(frozen=True, eq=False)
class Machine:
    """A finite machine: labels move its state, and each state has outputs for queries.

    States are 0 … n−1 in canonical (breadth-first) order; 0 is the initial state.
    `transitions[state, label]` is the next state, or −1 where it was never observed;
    labels in `trivial` loop on every state. Outputs that depend on the state, all observed, are
    three parallel columns sorted by state and query. Outputs that do not are `constant_*`;
    `asked_*`, sorted likewise, are the states where these were observed. A query is
    `observation code * number of actions + action code`. `decisions` are the steps of state
    merging in order, if known.

    If a query has several outputs in a state, because of noise, its output is the most frequent
    one, and `spread` holds all of them with their counts.

    `predicts` names the predicted column: "observation" (the next one), "reward", "terminated",
    or any other. When the machine is `supplemented`, an observation is a pair (observation,
    state of the Transition Machine). Outputs were rounded to `digits` decimals before they were
    compared, unless that is None.
    """

    labels: Vocabulary[Label]
    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    outputs: Vocabulary[Any]
    transitions: Codes
    trivial: tuple[int, ...]
    output_state: Codes
    output_question: NDArray[np.int64]
    output_value: Codes
    constant_question: NDArray[np.int64]
    constant_value: Codes
    support: Support | None = field(default=None, repr=False)
    decisions: tuple[MergeDecision, ...] | None = field(default=None, repr=False)
    asked_state: Codes = field(default_factory=no_codes)
    asked_question: NDArray[np.int64] = field(default_factory=no_numbers)
    predicts: str = "output"
    supplemented: bool = False
    digits: int | None = None
    spread: OutputCounts = field(default_factory=OutputCounts)

    kind = _Kind()
    """"transition" for the machine that predicts the next observation, else the column."""

    def __post_init__(self) -> None:
        if self.predicts in ("", "transition"):
            raise ModelError(
                f"a machine cannot predict a column called {self.predicts!r}: rename the column"
            )
        for column, machine_type in _CLASSES.items():
            if isinstance(self, machine_type) != (self.predicts == column):
                raise ModelError(
                    f"a {type(self).__name__} does not predict {self.predicts!r}: make it a "
                    f"{machine_class(self.predicts).__name__}"
                )
        if self.supplemented and self.kind == "transition":
            raise ModelError("a Transition Machine cannot be supplemented with its own states")

    @property
    def title(self) -> str:
        """Name in headings, such as "Reward Machine"; safe to print."""
        return visible(f"{self.kind[:1].upper()}{self.kind[1:]} Machine")

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.transitions)

    @property
    def trivial_labels(self) -> tuple[Label, ...]:
        """Labels that were assumed to change no state.

        Paper: I'_β.
        """
        return tuple(self.labels[code] for code in self.trivial)

    def step(self, state: State, label: Iterable[str]) -> State:
        """Return the state after reading a label, or `UNSEEN`.

        Paper: 𝒯.
        """
        if state is UNSEEN:
            return UNSEEN
        self._check_state(state)
        code = self.labels.get(as_label(label))
        if code is None:
            return UNSEEN
        target: int = self.transitions.item(state, code)
        return UNSEEN if target < 0 else target

    def run(self, labels: Iterable[Iterable[str]], state: State = 0) -> State:
        """Return the state after reading a sequence of labels, or `UNSEEN`.

        Paper: 𝒯*.
        """
        if not isinstance(labels, Iterable) or is_single(labels):
            raise ModelError(f"labels={shown(labels)}: give a list of labels")
        for label in labels:
            state = self.step(state, label)
        return state

    def output(self, state: State, observation: Any, action: Any, *, assumed: bool = True) -> Any:
        """Return the output for an observation and an action, or `UNSEEN`.

        With `assumed=False`, only outputs observed in this state count.

        Paper: 𝒢.

        >>> import gymnasium as gym
        >>> import resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
        >>> machine = rs.infer(traces).machines.transition
        >>> machine.output(1, "corridor", "up"), machine.output(rs.UNSEEN, "corridor", "left")
        ('cyanroom', 'orangeroom')
        >>> machine.output(rs.UNSEEN, "corridor", "left", assumed=False)
        UNSEEN
        """
        if state is not UNSEEN:
            self._check_state(state)
        query = self._query(observation, action)
        constant = self._constants.get(query)
        if constant is not None and (assumed or (state, query) in self._observed_constants):
            return self.outputs[constant]
        if state is UNSEEN:
            return UNSEEN
        code = self._answers.get((state, query))
        return UNSEEN if code is None else self.outputs[code]

    @property
    def is_noisy(self) -> bool:
        """Whether a query has several outputs in a state."""
        return len(self.spread) > 0

    @property
    def noise(self) -> float:
        """Share of outputs that differ from the most frequent one of their state and query.

        A query whose count is not known counts once.
        """
        if not self.is_noisy:
            return 0.0
        return self.spread.odd / sum(int(counts.sum()) for counts in self.query_counts())

    def counts(self, state: State, observation: Any, action: Any) -> dict[Any, int]:
        """Return the count of each output in a state, the most frequent first.

        An output that is only assumed in this state has the count 0.

        Raises:
            ModelError: when the machine has an output, but not its count.
        """
        if outputs := self._varying(state, observation, action):
            return outputs
        output = self.output(state, observation, action)
        if output is UNSEEN:
            return {}
        return {output: self._count(state, self._query(observation, action))}

    def distribution(self, state: State, observation: Any, action: Any) -> dict[Any, float]:
        """Return the relative frequency of each output; nothing where unseen.

        The most frequent output comes first, and is the one `output` returns.

        >>> from resolvent.worlds import House
        >>> machine = House().machines().transition
        >>> machine.distribution(1, "corridor", "up"), machine.distribution(1, "corridor", "fly")
        ({'cyanroom': 1.0}, {})
        """
        if outputs := self._varying(state, observation, action):
            total = sum(outputs.values())
            return {output: count / total for output, count in outputs.items()}
        output = self.output(state, observation, action)
        return {} if output is UNSEEN else {output: 1.0}

    def entropy(self, state: State, observation: Any, action: Any) -> float:
        """Return the entropy of `distribution` in bits, nan where unseen."""
        shares = self.distribution(state, observation, action).values()
        return sum(share * log2(1 / share) for share in shares) if shares else nan

    def confidence(self, state: State, label: Iterable[str]) -> float:
        """Return the probability of a transition's target against its likeliest alternative.

        Computed for machines inferred from noisy traces, given all other transitions. It is nan
        without noise, for labels that are read often and change nothing, for labels never read in
        the state, and for machines with one state. `support.rivals` holds the odds.

        >>> from resolvent.worlds import House
        >>> House().machines().transition.confidence(0, {"key"})
        nan
        """
        alternatives = None if self.support is None else self.support.rivals
        if state is UNSEEN or self.step(state, label) is UNSEEN or alternatives is None:
            return nan
        code = self.labels.code(as_label(label))
        if alternatives.target[state, code] < 0:
            return nan
        # Below 0 the other target is likelier; no number is as small as e to the −700.
        return 1 / (1 + exp(min(-float(alternatives.log_odds[state, code]), 700.0)))

    def knowledge(self, state: State, observation: Any, action: Any) -> Basis:
        """Return the basis of the output for an observation and an action.

        >>> from resolvent.worlds import House
        >>> machine = House().machines().transition
        >>> print(machine.knowledge(1, "corridor", "up"), machine.knowledge(1, "corridor", "fly"))
        witnessed unseen
        """
        query = self._query(observation, action)
        if state is not UNSEEN:
            self._check_state(state)
            if (state, query) in self._answers or (state, query) in self._observed_constants:
                return Basis.WITNESSED
        return Basis.ASSUMED if query in self._constants else Basis.UNSEEN

    def answers(self) -> Iterator[TableEntry]:
        """Iterate over the output table, outputs that are the same in all states first."""
        for query, value in self._constants.items():
            yield TableEntry(None, *self.question(query), self.outputs[value])
        for (state, query), value in self._answers.items():
            yield TableEntry(state, *self.question(query), self.outputs[value])

    @property
    def constant_outputs(self) -> dict[tuple[Symbol, Symbol], Any]:
        """Outputs that do not depend on the state, by observation and action.

        Paper: ℛ(i_α).
        """
        return {
            self.question(query): self.outputs[value] for query, value in self._constants.items()
        }

    def question(self, number: int) -> tuple[Symbol, Symbol]:
        """Return the observation and action of a query's number."""
        observation, action = divmod(number, len(self.actions))
        return self.observations[observation], self.actions[action]

    def history(self, state: int) -> tuple[Label, ...]:
        """Return the shortest label sequence that reaches a state, first in label order."""
        self._check_state(state)
        if state not in self._shortest_paths:
            raise ModelError(f"no labels lead to state {state}: it has no history")
        labels = []
        while state:
            state, code = self._shortest_paths[state]
            labels.append(self.labels[code])
        return tuple(reversed(labels))

    def first_move(self, state: int) -> tuple[int, Label] | None:
        """Return source and label of the last transition of the shortest path to a state.

        None for the initial state, and for one that cannot be reached.

        >>> from resolvent.worlds import House
        >>> House().machines().transition.first_move(1)
        (0, frozenset({'key'}))
        """
        self._check_state(state)
        source, code = self._shortest_paths.get(state, (0, -1))
        return None if code < 0 else (source, self.labels[code])

    def reachable(self) -> list[int]:
        """Return the states that can be reached from the initial one."""
        return sorted(self._shortest_paths)

    def nearest_first(self) -> list[int]:
        """Return the reachable states in breadth-first order."""
        return list(self._shortest_paths)

    def replay(self, labels_read: Codes, offsets: NDArray[np.int64]) -> Codes:
        """Return the state at every step of many traces; −1 from an unseen label on.

        `labels_read` holds codes of this machine's labels (see `codes_of`): −1 for no label,
        the number of labels or more for an unknown label.
        """
        table = np.ascontiguousarray(self.transitions.ravel())
        return _core.walk_states(table, len(self.labels), labels_read, offsets)

    def answer_many(
        self, states: Codes, questions: NDArray[np.int64], *, assumed: bool = True
    ) -> Codes:
        """Return the output code for each state and query; −1 where unseen.

        A query of −1 stands for an observation or action the machine does not know.
        With `assumed=False`, outputs that were not observed in their state are unseen, too.
        """
        keys = self._keys(states, questions)
        by_state = look_up(self._output_keys, self.output_value, keys)
        constant = look_up(self.constant_question, self.constant_value, questions)
        if not assumed:
            constant[~is_member(self._observed_keys, keys)] = -1
        return np.where(constant >= 0, constant, by_state)

    def knowledge_many(self, states: Codes, questions: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return for each state and query the code of the basis of its output.

        The codes are `OBSERVED_CODE`, `GENERALIZED_CODE` and `UNSEEN_CODE` of
        `resolvent.machines.knowledge`.
        """
        keys = self._keys(states, questions)
        levels = np.full(len(keys), UNSEEN_CODE, np.int8)
        levels[is_member(self.constant_question, questions)] = GENERALIZED_CODE
        is_observed = is_member(self._output_keys, keys) | is_member(self._observed_keys, keys)
        levels[is_observed] = OBSERVED_CODE
        return levels

    def witnessing(self, states: Codes, questions: NDArray[np.int64]) -> Self:
        """Return the machine with these constant queries marked as observed in these states.

        Rows with a state or query of −1, and queries whose output depends on the state, are
        ignored. Support then holds no counts by state.
        """
        is_new = is_member(self.constant_question, questions) & (states >= 0)
        keys, _ = distinct_numbers(
            np.concatenate([self._observed_keys, self._keys(states[is_new], questions[is_new])]),
            self.states * self._queries,
        )
        state, query = np.divmod(keys, max(self._queries, 1))
        return replace(
            self,
            asked_state=state.astype(np.int32),
            asked_question=query,
            support=self.support and replace(self.support, asked=no_numbers()),
        )

    def query_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the counts of the outputs by state, and of constant ones; 1 if not known."""
        if self.support is not None:
            return self.support.outputs, self.support.constants
        by_state = np.ones(len(self.output_value), np.int64)
        by_state[self.spread_rows[self.spread.starts]] = self.spread.totals
        return by_state, np.ones(len(self.constant_value), np.int64)

    def output_rows(self, states: Codes, questions: NDArray[np.int64]) -> Codes:
        """Return the row of the outputs by state for each state and query, −1 for none."""
        return places(self._output_keys, self._keys(states, questions))

    @property
    def spread_rows(self) -> Codes:
        """Row of the outputs by state that each entry of `spread` belongs to."""
        return self.output_rows(self.spread.state, self.spread.question)

    def is_minimal(self) -> bool:
        """Return whether no two states have the same behavior; unseen is a distinct behavior."""
        from resolvent.machines.compare import is_minimal

        return is_minimal(self)

    def guessing(self) -> Self:
        """Return this machine with a guess wherever a label or a query is `UNSEEN` in a state.

        The guess is the behavior of the other states, weighted by their similarity. States keep
        their numbers. The returned machine does not mark its guesses and has no support: use
        `knowledge` of this one. A label or query unseen in all states stays `UNSEEN`.

        >>> import gymnasium as gym
        >>> import resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/TwoKeys-v0"), episodes=4, seed=0)
        >>> machine = rs.infer(traces).machines.transition
        >>> int((machine.transitions < 0).sum()), int((machine.guessing().transitions < 0).sum())
        (5, 0)
        """
        from resolvent.machines.guessing import guessing

        return guessing(self)

    def to_text(self, *, most_outputs: int = 20) -> str:
        """Return the machine as plain text tables with at most `most_outputs` outputs."""
        from resolvent.viz.text import to_text

        return to_text(self, most_outputs=most_outputs)

    def to_dot(self) -> str:
        """Return the machine in Graphviz's DOT language, parallel edges joined."""
        from resolvent.viz.dot import to_dot

        return to_dot(self)

    def to_mermaid(self) -> str:
        """Return the machine as a Mermaid state diagram, parallel edges joined."""
        from resolvent.viz.dot import to_mermaid

        return to_mermaid(self)

    def to_mealy_dot(self, *, complete: bool = False) -> str:
        """Return the machine as a Mealy machine in DOT, for AALpy and LearnLib.

        With `complete`, every state has an output for every input: `unseen` where none is known.
        """
        from resolvent.machines.io.mealy_dot import to_mealy_dot

        return to_mealy_dot(self, complete=complete)

    def to_svg(self, *, most_states: int = 100) -> str:
        """Return an SVG image of the `most_states` states that are reached first.

        Raises:
            MissingExtra: when Graphviz is not installed.
        """
        from resolvent.viz.svg import to_svg

        return to_svg(self, most_states=most_states)

    def to_png(self, *, most_states: int = 100, scale: float = 2.0) -> bytes:
        """Return the image of `to_svg` as PNG, each of its pixels `scale` pixels wide.

        Raises:
            MissingExtra: when resvg, its font or Graphviz is not installed.
        """
        from resolvent.viz.png import to_png

        return to_png(self, most_states=most_states, scale=scale)

    def __eq__(self, other: object) -> bool:
        """Return whether all tables are equal; support and decisions do not count.

        Of outputs that vary, the shares must be equal.
        """
        if not isinstance(other, Machine):
            return NotImplemented
        return (
            self._identity == other._identity
            and all(map(np.array_equal, self._tables, other._tables))
            and self.spread == other.spread
        )

    def __hash__(self) -> int:
        return hash((self._identity, self.transitions.tobytes()))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.states} states, {len(self.labels)} labels, "
            f"{len(self.output_value)} outputs by state, {len(self.constant_value)} constant)"
        )

    def __str__(self) -> str:
        return self.to_text()

    def _repr_svg_(self) -> str | None:
        """Draw the machine for a notebook, which shows its text where this returns None."""
        from resolvent.viz.svg import svg_or_nothing

        return svg_or_nothing(self)

    @property
    def _identity(self) -> tuple[Any, ...]:
        vocabularies = (self.labels, self.observations, self.actions, self.outputs)
        return (*vocabularies, self.trivial, self.predicts, self.supplemented, self.digits)

    @property
    def _tables(self) -> tuple[NDArray[Any], ...]:
        return (
            self.transitions,
            self.output_state,
            self.output_question,
            self.output_value,
            self.constant_question,
            self.constant_value,
            self.asked_state,
            self.asked_question,
        )

    def _query(self, observation: Any, action: Any) -> int:
        """Return the number of a query, −1 if the machine does not know one of its symbols."""
        observation_code = self.observations.get(as_symbol(observation))
        action_code = self.actions.get(as_symbol(action))
        if observation_code is None or action_code is None:
            return -1
        return observation_code * len(self.actions) + action_code

    def _varying(self, state: State, observation: Any, action: Any) -> dict[Any, int]:
        """Return the counts of the outputs of a query that vary in a state; empty otherwise."""
        if state is UNSEEN:
            return {}
        outputs = self.spread.rows.get((state, self._query(observation, action)), ())
        return {self.outputs[value]: count for value, count in outputs}

    def _count(self, state: State, query: int) -> int:
        """Return the count of a query with one output in a state."""
        if state is UNSEEN:
            return 0
        key, support = np.array([state * self._queries + query]), self.support
        keys = self._output_keys, self._observed_keys
        row, constant_row = (int(places(column, key)[0]) for column in keys)
        if row < 0 and constant_row < 0:
            return 0
        if support is None or (row < 0 and not len(support.asked)):
            raise ModelError(
                "this machine does not hold how often a state was asked: infer it from traces"
            )
        return int(support.outputs[row] if row >= 0 else support.asked[constant_row])

    def _keys(self, states: Codes, queries: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one number for each state and query, −1 where either is −1."""
        keys = states.astype(np.int64) * self._queries + queries
        keys[(states < 0) | (queries < 0)] = -1
        return keys

    @property
    def _queries(self) -> int:
        return len(self.observations) * len(self.actions)

    @cached_property
    def _output_keys(self) -> NDArray[np.int64]:
        return self.output_state.astype(np.int64) * self._queries + self.output_question

    @cached_property
    def _observed_keys(self) -> NDArray[np.int64]:
        return self.asked_state.astype(np.int64) * self._queries + self.asked_question

    @cached_property
    def _observed_constants(self) -> frozenset[tuple[int, int]]:
        columns = (self.asked_state.tolist(), self.asked_question.tolist())
        return frozenset(zip(*columns, strict=True))

    @cached_property
    def _answers(self) -> dict[tuple[int, int], int]:
        keys = zip(self.output_state.tolist(), self.output_question.tolist(), strict=True)
        return dict(zip(keys, self.output_value.tolist(), strict=True))

    @cached_property
    def _constants(self) -> dict[int, int]:
        columns = (self.constant_question.tolist(), self.constant_value.tolist())
        return dict(zip(*columns, strict=True))

    @cached_property
    def _shortest_paths(self) -> dict[int, tuple[int, int]]:
        return shortest_paths(self.transitions)

    def _check_state(self, state: int) -> None:
        if type(state) is int and 0 <= state < self.states:  # a check for `Integral` is slow
            return
        is_integer = isinstance(state, Integral) and not isinstance(state, bool)
        if not is_integer or not 0 <= state < self.states:
            raise ModelError(
                f"state {shown(state)} does not exist: the states are 0 to {self.states - 1}"
            )


@dataclass(frozen=True, eq=False)
class TransitionMachine(Machine):
    """A machine that predicts the next observation."""

    predicts: str = "observation"

    __repr__ = Machine.__repr__


@dataclass(frozen=True, eq=False)
class RewardMachine(Machine):
    """A machine that predicts the reward."""

    predicts: str = "reward"

    __repr__ = Machine.__repr__

    @property
    def reward_digits(self) -> int | None:
        """Number of decimals that rewards were rounded to; None for all."""
        return self.digits


_CLASSES: Final[dict[str, type[Machine]]] = {
    "observation": TransitionMachine,
    "reward": RewardMachine,
}


def machine_class(predicts: str) -> type[Machine]:
    """Return the class of machines that predict a column.

    >>> machine_class("reward").__name__, machine_class("cost").__name__
    ('RewardMachine', 'Machine')
    """
    return _CLASSES.get(predicts, Machine)
