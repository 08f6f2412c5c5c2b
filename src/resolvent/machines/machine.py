"""A Dual Behavior Mealy Machine: labels move its state, and each state has outputs for queries.

A query is an observation and an action. A machine is partial: its output is `UNSEEN` where the
traces show none, and observed outputs are distinguished from generalized ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import exp, log2
from resolvent._util.text import visible
from resolvent.errors import ModelError
from resolvent.machines.memory import UNSEEN, FiniteMemory, State
from resolvent.machines.tables import (
    GENERALIZED_CODE,
    OBSERVED_CODE,
    UNSEEN_CODE,
    Basis,
    MergeDecision,
    OutputCounts,
    Support,
    TableEntry,
    is_member,
    look_up,
    no_codes,
    no_numbers,
    pair_keys,
    positions,
)
from resolvent.traces.symbols import Symbol, as_label, as_symbol
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_numbers


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Machine(FiniteMemory):
    """A finite memory (`FiniteMemory`) whose states have outputs for queries.

    States are in canonical (breadth-first) order. Outputs that depend on the state, all observed,
    are three parallel columns sorted by state and query. Outputs that do not are `constant_*`;
    `observed_constant_*`, sorted likewise, are the states where these were observed. A query is
    `observation code * number of actions + action code`. `decisions` are the steps of state
    merging in order, if known. Support and decisions do not count when machines are compared.

    If a query has several outputs in a state, because of noise, its output is the most frequent
    one, and `output_counts` holds all of them with their counts.

    `predicts` names the predicted column: "observation" (the next one), "reward", "terminated",
    or any other. When the machine is `supplemented`, an observation is a pair (observation,
    state of the Transition Machine). Outputs were rounded to `digits` decimals before they were
    compared, unless that is None.
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    outputs: Vocabulary[Any]
    output_state: Codes
    output_query: NDArray[np.int64]
    output_value: Codes
    constant_query: NDArray[np.int64]
    constant_value: Codes
    support: Support | None = field(default=None, compare=False)
    decisions: tuple[MergeDecision, ...] | None = field(default=None, compare=False)
    observed_constant_state: Codes = field(default_factory=no_codes)
    observed_constant_query: NDArray[np.int64] = field(default_factory=no_numbers)
    predicts: str = "output"
    supplemented: bool = False
    digits: int | None = None
    output_counts: OutputCounts = field(default_factory=OutputCounts)

    def __post_init__(self) -> None:
        if self.predicts in ("", "transition"):
            raise ModelError(
                f"a machine cannot predict a column called {self.predicts!r}: rename the column"
            )
        if type(self) is not (expected := machine_class(self.predicts)):
            raise ModelError(
                f"a {type(self).__name__} does not predict {self.predicts!r}: make it a "
                f"{expected.__name__}"
            )
        if self.supplemented and self.name == "transition":
            raise ModelError("a Transition Machine cannot be supplemented with its own states")

    @property
    def name(self) -> str:
        """Name in sets of machines: "transition" for the next observation, else the column."""
        return machine_name(self.predicts)

    @property
    def title(self) -> str:
        """Name in headings, such as "Reward Machine"; safe to print."""
        return visible(f"{self.name[:1].upper()}{self.name[1:]} Machine")

    def output(
        self, state: State, observation: Any, action: Any, *, generalized: bool = True
    ) -> Any:
        """Return the output for an observation and an action, or `UNSEEN`.

        With `generalized=False`, only outputs observed in this state count.

        Paper: 𝒢.

        >>> import gymnasium as gym, resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
        >>> machine = rs.infer(traces).machines.transition
        >>> machine.output(1, "corridor", "up"), machine.output(rs.UNSEEN, "corridor", "left")
        ('cyanroom', 'orangeroom')
        >>> machine.output(rs.UNSEEN, "corridor", "left", generalized=False)
        UNSEEN
        """
        if state is not UNSEEN:
            self._check_state(state)
        query = self.query_number(observation, action)
        constant = self._constants.get(query)
        if constant is not None and (generalized or (state, query) in self._observed_constants):
            return self.outputs[constant]
        if state is UNSEEN:
            return UNSEEN
        code = self._outputs_by_state.get((state, query))
        return UNSEEN if code is None else self.outputs[code]

    def basis(self, state: State, observation: Any, action: Any) -> Basis:
        """Return the basis of the output for an observation and an action.

        >>> from resolvent.worlds import House
        >>> machine = House().machines().transition
        >>> print(machine.basis(1, "corridor", "up"), machine.basis(1, "corridor", "fly"))
        observed unseen
        """
        query = self.query_number(observation, action)
        if state is not UNSEEN:
            self._check_state(state)
            pair = (state, query)
            if pair in self._outputs_by_state or pair in self._observed_constants:
                return Basis.OBSERVED
        return Basis.GENERALIZED if query in self._constants else Basis.UNSEEN

    def predict(
        self, states: Codes, queries: NDArray[np.int64], *, generalized: bool = True
    ) -> Codes:
        """Return the output code for each state and query as `output` does; −1 where unseen.

        A query of −1 stands for an observation or action the machine does not know.
        """
        keys = pair_keys(states, queries, self._queries)
        by_state = look_up(self._output_keys, self.output_value, keys)
        constant = look_up(self.constant_query, self.constant_value, queries)
        if not generalized:
            constant[~is_member(self._observed_constant_keys, keys)] = -1
        return np.where(constant >= 0, constant, by_state)

    def basis_many(self, states: Codes, queries: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return the basis of each output, as its position in `BASIS_BY_CODE`."""
        keys = pair_keys(states, queries, self._queries)
        codes = np.full(len(keys), UNSEEN_CODE, np.int8)
        codes[is_member(self.constant_query, queries)] = GENERALIZED_CODE
        for observed in (self._output_keys, self._observed_constant_keys):
            codes[is_member(observed, keys)] = OBSERVED_CODE
        return codes

    def entries(self) -> Iterator[TableEntry]:
        """Iterate over the output table, outputs that are the same in all states first."""
        for query, value in self._constants.items():
            yield TableEntry(None, *self.query(query), self.outputs[value])
        for (state, query), value in self._outputs_by_state.items():
            yield TableEntry(state, *self.query(query), self.outputs[value])

    @property
    def constant_outputs(self) -> dict[tuple[Symbol, Symbol], Any]:
        """Outputs that do not depend on the state, by observation and action.

        Paper: ℛ(i_α).
        """
        return {self.query(query): self.outputs[value] for query, value in self._constants.items()}

    def query(self, number: int) -> tuple[Symbol, Symbol]:
        """Return the observation and action of a query's number."""
        observation, action = divmod(number, len(self.actions))
        return self.observations[observation], self.actions[action]

    def query_number(self, observation: Any, action: Any) -> int:
        """Return the number of a query, −1 if the machine does not know one of its symbols."""
        seen = self.observations.get(as_symbol(observation))
        done = self.actions.get(as_symbol(action))
        return -1 if seen is None or done is None else seen * len(self.actions) + done

    def with_observed(self, states: Codes, queries: NDArray[np.int64]) -> Self:
        """Return the machine with its constant queries marked as observed in these states only.

        Rows with −1, and queries whose output depends on the state, are ignored.
        """
        is_constant = is_member(self.constant_query, queries) & (states >= 0)
        keys = pair_keys(states[is_constant], queries[is_constant], self._queries)
        keys, _ = distinct_numbers(keys, self.states * self._queries)
        state, query = np.divmod(keys, max(self._queries, 1))
        return replace(
            self,
            observed_constant_state=state.astype(np.int32),
            observed_constant_query=query,
            support=self.support and replace(self.support, constants_by_state=no_numbers()),
        )

    @property
    def is_noisy(self) -> bool:
        """Whether a query has several outputs in a state."""
        return len(self.output_counts) > 0

    @property
    def noise(self) -> float:
        """Share of outputs that differ from the most frequent one of their state and query.

        A query whose count is not known counts once.
        """
        if not self.is_noisy:
            return 0.0
        total = sum(int(counts.sum()) for counts in self.query_counts())
        return int(self.output_counts.count.sum() - self.output_counts.most.sum()) / total

    def counts(self, state: State, observation: Any, action: Any) -> dict[Any, int]:
        """Return the count of each output in a state, the most frequent first.

        An output that is only generalized to this state has the count 0.

        Raises:
            ModelError: when the machine has an output, but not its count.
        """
        if outputs := self._varying(state, observation, action):
            return outputs
        output = self.output(state, observation, action)
        query = self.query_number(observation, action)
        return {} if output is UNSEEN else {output: self._count(state, query)}

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
        the state, and for machines with one state. `support.alternatives` holds the odds.

        >>> from resolvent.worlds import House
        >>> House().machines().transition.confidence(0, {"key"})
        nan
        """
        alternatives = None if self.support is None else self.support.alternatives
        if state is UNSEEN or self.step(state, label) is UNSEEN or alternatives is None:
            return nan
        code = self.labels.code(as_label(label))
        if alternatives.target[state, code] < 0:
            return nan
        # Below 0 the other target is likelier; no number is as small as e to the −700.
        return 1 / (1 + exp(min(-float(alternatives.log_odds[state, code]), 700.0)))

    def query_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the counts of the outputs by state, and of constant ones; 1 if not known."""
        if self.support is not None:
            return self.support.outputs, self.support.constants
        by_state = np.ones(len(self.output_value), np.int64)
        by_state[self.output_count_rows[self.output_counts.starts]] = self.output_counts.totals
        return by_state, np.ones(len(self.constant_value), np.int64)

    def output_rows(self, states: Codes, queries: NDArray[np.int64]) -> Codes:
        """Return the row of the outputs by state for each state and query, −1 for none."""
        return positions(self._output_keys, pair_keys(states, queries, self._queries))

    @property
    def output_count_rows(self) -> Codes:
        """Row of the outputs by state that each entry of `output_counts` belongs to."""
        return self.output_rows(self.output_counts.state, self.output_counts.query)

    def is_minimal(self) -> bool:
        """Return whether no two states have the same behavior; unseen is a distinct behavior.

        Outputs that vary are the same if each has the same share.
        """
        outputs: list[list[tuple[int, ...]]] = [[] for _ in range(self.states)]
        main_outputs = self.output_state, self.output_query, self.output_value
        for columns in (main_outputs, self.output_counts.shares):
            for state, *entry in zip(*(column.tolist() for column in columns), strict=True):
                outputs[state].append(tuple(entry))
        numbers: dict[tuple[Any, ...], int] = {}
        blocks = np.array([numbers.setdefault(tuple(row), len(numbers)) for row in outputs])
        while True:  # states are split by their next states, until nothing changes
            targets = np.where(self.transitions >= 0, blocks[self.transitions], -1)
            rows = np.column_stack([blocks, targets])
            _, finer = np.unique(rows, axis=0, return_inverse=True)
            if finer.max() == blocks.max():
                return int(blocks.max()) + 1 == self.states
            blocks = finer

    def guessing(self) -> Self:
        """Return this machine with a guess wherever a label or a query is `UNSEEN` in a state.

        The guess is the behavior of the other states, weighted by their similarity. States keep
        their numbers. The returned machine does not mark its guesses and has no support: use
        `basis` of this one. A label or query unseen in all states stays `UNSEEN`.

        >>> import gymnasium as gym, resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/TwoKeys-v0"), episodes=4, seed=0)
        >>> machine = rs.infer(traces).machines.transition
        >>> int((machine.transitions < 0).sum()), int((machine.guessing().transitions < 0).sum())
        (5, 0)
        """
        from resolvent.machines.build import with_guesses

        return with_guesses(self)

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
        Unseen labels lead to an added state that has only the constant outputs.

        AALpy's `load_automaton_from_file(path, "mealy")` and AutomataLib's `DOTParsers.mealy()`
        read both. Of a partial machine AALpy reports that it is not input complete.

        >>> from resolvent.worlds import House
        >>> lines = House().machines().transition.to_mealy_dot().splitlines()
        >>> next(line for line in lines if "corridor:up" in line)
        '  s0 -> s0 [label="ask:corridor:up/corridor"];'
        """
        from resolvent.machines.io.mealy_dot import to_mealy_dot

        return to_mealy_dot(self, complete=complete)

    def to_svg(self, *, most_states: int = 100) -> str:
        """Return an SVG image of the `most_states` states that are reached first.

        States are named by their access sequences; shortened texts appear on hovering. Above 60
        arrows, only the first one to each state is drawn, and states list their other successors.

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
        from resolvent.viz.svg import to_png

        return to_png(self, most_states=most_states, scale=scale)

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

    def _varying(self, state: State, observation: Any, action: Any) -> dict[Any, int]:
        """Return the counts of the outputs of a query that vary in a state; empty otherwise."""
        if state is UNSEEN:
            return {}
        row = self.output_counts.rows.get((state, self.query_number(observation, action)), {})
        return {self.outputs[value]: count for value, count in row.items()}

    def _count(self, state: State, query: int) -> int:
        """Return the count of a query with one output in a state."""
        if state is UNSEEN:
            return 0
        key, support = np.array([state * self._queries + query]), self.support
        counts = (support.outputs, support.constants_by_state) if support else (no_numbers(),) * 2
        keys = (self._output_keys, self._observed_constant_keys)
        for of_keys, count in zip(keys, counts, strict=True):
            if (row := int(positions(of_keys, key)[0])) >= 0:
                if len(count):
                    return int(count[row])
                raise ModelError(
                    "this machine does not hold how often a query was observed in a state: infer "
                    "it from traces"
                )
        return 0

    @property
    def _queries(self) -> int:
        return len(self.observations) * len(self.actions)

    @cached_property
    def _output_keys(self) -> NDArray[np.int64]:
        return pair_keys(self.output_state, self.output_query, self._queries)

    @cached_property
    def _observed_constant_keys(self) -> NDArray[np.int64]:
        return pair_keys(self.observed_constant_state, self.observed_constant_query, self._queries)

    @cached_property
    def _outputs_by_state(self) -> dict[tuple[int, int], int]:
        pairs = zip(self.output_state.tolist(), self.output_query.tolist(), strict=True)
        return dict(zip(pairs, self.output_value.tolist(), strict=True))

    @cached_property
    def _constants(self) -> dict[int, int]:
        return dict(zip(self.constant_query.tolist(), self.constant_value.tolist(), strict=True))

    @cached_property
    def _observed_constants(self) -> frozenset[tuple[int, int]]:
        columns = (self.observed_constant_state, self.observed_constant_query)
        return frozenset(zip(*(column.tolist() for column in columns), strict=True))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TransitionMachine(Machine):
    """A machine that predicts the next observation."""

    predicts: str = "observation"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RewardMachine(Machine):
    """A machine that predicts the reward."""

    predicts: str = "reward"


_CLASSES: Final[dict[str, type[Machine]]] = {
    "observation": TransitionMachine,
    "reward": RewardMachine,
}


def machine_class(predicts: str) -> type[Machine]:
    """Return the class of machines that predict a column."""
    return _CLASSES.get(predicts, Machine)


def machine_name(predicts: str) -> str:
    """Return the name of the machine that predicts a column.

    >>> machine_name("observation"), machine_name("reward"), machine_name("cost")
    ('transition', 'reward', 'cost')
    """
    return "transition" if predicts == "observation" else predicts
