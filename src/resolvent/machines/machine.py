"""A Dual Behavior Mealy Machine: labels move it, observation-action pairs question it.

All machines are the same thing but for the column they answer with: the next
observation, the reward, or any other. A machine is partial: what was never seen is
`UNSEEN`, never a guess; and it tells what it was shown from what it only assumes.
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
from resolvent.machines.answer import Answer
from resolvent.machines.asking import AnswerRows, times_asked, times_in_state
from resolvent.machines.columns import is_among, look_up, no_codes, no_numbers
from resolvent.machines.decision import Decision
from resolvent.machines.first_ways import first_ways
from resolvent.machines.kinds import Kind
from resolvent.machines.knowledge import ASSUMED_CODE, UNSEEN_CODE, WITNESSED_CODE, Knowledge
from resolvent.machines.spread import Spread
from resolvent.machines.support import Support
from resolvent.machines.unseen import UNSEEN, State
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_numbers


@dataclass(frozen=True, eq=False)
class Machine:
    """Memory as a finite machine: labels move it, and each state answers what an action leads to.

    States are 0 … n−1, of which 0 is initial, in canonical (breadth-first) order.
    `transitions[state, label]` is the next state, or −1 where it was never seen;
    labels in `trivial` loop on every state. Outputs that depend on the state are
    three parallel columns sorted by state and question, each of them witnessed; those
    that do not are `constant_*`, and `asked_*`, sorted likewise, say in which states
    those were really asked for. A question is `observation code * number of actions +
    action code`. `decisions` tell in order how the machine was found, where that is known.

    In a noisy world a state may answer a question in more than one way: then its output is
    the most frequent answer, and `spread` holds all of them with their counts.

    `predicts` names the column that the machine answers with: "observation" (the next
    one), "reward", "terminated", or any other. When the machine is `supplemented`, an
    observation is a pair (observation, state of the Transition Machine). Outputs were
    rounded to `digits` decimals before they were compared, unless that is None.
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
    decisions: tuple[Decision, ...] | None = field(default=None, repr=False)
    asked_state: Codes = field(default_factory=no_codes)
    asked_question: NDArray[np.int64] = field(default_factory=no_numbers)
    predicts: str = "output"
    supplemented: bool = False
    digits: int | None = None
    spread: Spread = field(default_factory=Spread)

    kind = Kind()
    """"transition" for the machine that predicts the next observation, else what it predicts."""

    def __post_init__(self) -> None:
        if self.predicts in ("", "transition"):
            raise ModelError(
                f"a machine cannot predict a column called {self.predicts!r}: rename the column"
            )
        for column, one in _CLASSES.items():
            if isinstance(self, one) != (self.predicts == column):
                raise ModelError(
                    f"a {type(self).__name__} does not predict {self.predicts!r}: make it a "
                    f"{machine_class(self.predicts).__name__}"
                )
        if self.supplemented and self.kind == "transition":
            raise ModelError("a Transition Machine cannot be supplemented with its own states")

    @property
    def title(self) -> str:
        """What the machine is called in headings, such as "Reward Machine"; safe to show."""
        return visible(f"{self.kind[:1].upper()}{self.kind[1:]} Machine")

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.transitions)

    @property
    def trivial_labels(self) -> tuple[Label, ...]:
        """The labels that were taken to change no state.

        Paper: I'_β.
        """
        return tuple(self.labels[code] for code in self.trivial)

    def step(self, state: State, label: Iterable[str]) -> State:
        """Return the state that reading a label leads to, or `UNSEEN`.

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
        """Return the state that reading labels one after another leads to, or `UNSEEN`.

        Paper: 𝒯*.
        """
        if not isinstance(labels, Iterable) or is_single(labels):
            raise ModelError(f"labels={shown(labels)}: give a list of labels")
        for label in labels:
            state = self.step(state, label)
        return state

    def output(self, state: State, observation: Any, action: Any, *, assumed: bool = True) -> Any:
        """Return what the machine answers to an observation and an action, or `UNSEEN`.

        With `assumed=False`, only what was witnessed in this very state is answered.

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
        question = self._number(observation, action)
        constant = self._constants.get(question)
        if constant is not None and (assumed or (state, question) in self._asked):
            return self.outputs[constant]
        if state is UNSEEN:
            return UNSEEN
        code = self._answers.get((state, question))
        return UNSEEN if code is None else self.outputs[code]

    @property
    def is_noisy(self) -> bool:
        """Whether a state answers a question in more than one way."""
        return len(self.spread) > 0

    @property
    def noise(self) -> float:
        """The share of answers that were others than their state's most frequent one.

        Where it is not known how often a question was asked, it counts as asked once.
        """
        if not self.is_noisy:
            return 0.0
        return self.spread.odd / sum(int(times.sum()) for times in times_asked(self))

    def counts(self, state: State, observation: Any, action: Any) -> dict[Any, int]:
        """Return how often each answer came in a state, the most frequent first.

        An answer that is only assumed in this state came 0 times there.

        Raises:
            ModelError: when the machine has an answer, but does not hold how often it came.
        """
        several = self._several(state, observation, action)
        if several:
            return several
        answer = self.output(state, observation, action)
        if answer is UNSEEN:
            return {}
        return {answer: times_in_state(self, state, self._number(observation, action))}

    def distribution(self, state: State, observation: Any, action: Any) -> dict[Any, float]:
        """Return how likely each answer is, by how often it came; nothing where unseen.

        The most likely answer comes first, and is what `output` gives.

        >>> from resolvent.worlds import House
        >>> machine = House().machines().transition
        >>> machine.distribution(1, "corridor", "up"), machine.distribution(1, "corridor", "fly")
        ({'cyanroom': 1.0}, {})
        """
        several = self._several(state, observation, action)
        if several:
            total = sum(several.values())
            return {answer: count / total for answer, count in several.items()}
        answer = self.output(state, observation, action)
        return {} if answer is UNSEEN else {answer: 1.0}

    def entropy(self, state: State, observation: Any, action: Any) -> float:
        """Return how uncertain an answer is, in bits: 0 for a sure one, nan for an unseen one."""
        shares = self.distribution(state, observation, action).values()
        return sum(share * log2(1 / share) for share in shares) if shares else nan

    def confidence(self, state: State, label: Iterable[str]) -> float:
        """Return how likely a move leads where it does, rather than where it likeliest else would.

        Known of machines that were found despite noise, from the odds of both given all
        traces and all other moves. It is nan where that is not known: without noise, for labels
        that are read often and change nothing, where the label was never read, and where
        there is no other state.
        `support.rivals` holds the odds.

        >>> from resolvent.worlds import House
        >>> House().machines().transition.confidence(0, {"key"})
        nan
        """
        rivals = None if self.support is None else self.support.rivals
        if state is UNSEEN or self.step(state, label) is UNSEEN or rivals is None:
            return nan
        code = self.labels.code(as_label(label))
        if rivals.target[state, code] < 0:
            return nan
        # Below 0 the other target is likelier; no number is as small as e to the −700.
        return 1 / (1 + exp(min(-float(rivals.log_odds[state, code]), 700.0)))

    def knowledge(self, state: State, observation: Any, action: Any) -> Knowledge:
        """Return what the machine's answer to an observation and an action rests on.

        >>> from resolvent.worlds import House
        >>> machine = House().machines().transition
        >>> print(machine.knowledge(1, "corridor", "up"), machine.knowledge(1, "corridor", "fly"))
        witnessed unseen
        """
        question = self._number(observation, action)
        if state is not UNSEEN:
            self._check_state(state)
            if (state, question) in self._answers or (state, question) in self._asked:
                return Knowledge.WITNESSED
        return Knowledge.ASSUMED if question in self._constants else Knowledge.UNSEEN

    def answers(self) -> Iterator[Answer]:
        """Go through all that the machine knows to answer, constants first."""
        columns = (self.constant_question.tolist(), self.constant_value.tolist())
        for question, value in zip(*columns, strict=True):
            yield Answer(None, *self.question(question), self.outputs[value])
        for (state, question), value in self._answers.items():
            yield Answer(state, *self.question(question), self.outputs[value])

    @property
    def constant_outputs(self) -> dict[tuple[Symbol, Symbol], Any]:
        """Return the answers that do not depend on the state.

        Paper: ℛ(i_α).
        """
        return {
            (answer.observation, answer.action): answer.output
            for answer in self.answers()
            if answer.state is None
        }

    def question(self, number: int) -> tuple[Symbol, Symbol]:
        """Return the observation and action that a question's number stands for."""
        observation, action = divmod(number, len(self.actions))
        return self.observations[observation], self.actions[action]

    def history(self, state: int) -> tuple[Label, ...]:
        """Return the shortest label history that leads to a state, first in label order."""
        self._check_state(state)
        if state not in self._first_ways:
            raise ModelError(f"no labels lead to state {state}: it has no history")
        labels = []
        while state:
            state, code = self._first_ways[state]
            labels.append(self.labels[code])
        return tuple(reversed(labels))

    def first_move(self, state: int) -> tuple[int, Label] | None:
        """Return the last move of the shortest history that leads to a state: from where, by what.

        None for the initial state, and for one that no labels lead to.

        >>> from resolvent.worlds import House
        >>> House().machines().transition.first_move(1)
        (0, frozenset({'key'}))
        """
        self._check_state(state)
        source, code = self._first_ways.get(state, (0, -1))
        return None if code < 0 else (source, self.labels[code])

    def reachable(self) -> list[int]:
        """Return the states that labels lead to from the initial one."""
        return sorted(self._first_ways)

    def nearest_first(self) -> list[int]:
        """Return the states that labels lead to, those with the shortest histories first."""
        return list(self._first_ways)

    def replay(self, labels_read: Codes, offsets: NDArray[np.int64]) -> Codes:
        """Return the state at every step of many traces; −1 from an unseen label on.

        `labels_read` holds codes of this machine's labels (see `codes_of`), −1
        where nothing is read, anything at or above their number for an unknown one.
        """
        table = np.ascontiguousarray(self.transitions.ravel())
        return _core.walk_states(table, len(self.labels), labels_read, offsets)

    def answer_many(
        self, states: Codes, questions: NDArray[np.int64], *, assumed: bool = True
    ) -> Codes:
        """Return the output code for each state and question; −1 where unseen.

        A question of −1 stands for an observation or action the machine never met.
        With `assumed=False`, what was not witnessed in its state is unseen, too.
        """
        rows, keys = self._rows, self._rows.keys(states, questions)
        found = look_up(rows.by_state, self.output_value, keys)
        constant = look_up(self.constant_question, self.constant_value, questions)
        if not assumed:
            constant[~is_among(rows.asked, keys)] = -1
        return np.where(constant >= 0, constant, found)

    def knowledge_many(self, states: Codes, questions: NDArray[np.int64]) -> NDArray[np.int8]:
        """Return for each state and question the code of what its answer rests on.

        The codes are `WITNESSED_CODE`, `ASSUMED_CODE` and `UNSEEN_CODE` of
        `resolvent.machines.knowledge`.
        """
        rows, keys = self._rows, self._rows.keys(states, questions)
        levels = np.full(len(keys), UNSEEN_CODE, np.int8)
        levels[is_among(self.constant_question, questions)] = ASSUMED_CODE
        levels[is_among(rows.by_state, keys) | is_among(rows.asked, keys)] = WITNESSED_CODE
        return levels

    def witnessing(self, states: Codes, questions: NDArray[np.int64]) -> Self:
        """Return the machine, told that these questions were asked in these states.

        Rows with a state or question of −1, and those whose answer depends on the
        state, tell nothing new. Support then holds no counts by state.
        """
        told = is_among(self.constant_question, questions) & (states >= 0)
        rows = self._rows
        keys, _ = distinct_numbers(
            np.concatenate([rows.asked, rows.keys(states[told], questions[told])]),
            self.states * rows.questions,
        )
        state, question = np.divmod(keys, max(rows.questions, 1))
        return replace(
            self,
            asked_state=state.astype(np.int32),
            asked_question=question,
            support=self.support and replace(self.support, asked=no_numbers()),
        )

    def guessing(self) -> Self:
        """Return this machine with a guess wherever a label or a question is `UNSEEN` in a state.

        The guess is what other states do, those that answer alike more than others. Numbers of
        states stay. What is guessed cannot be told from what was seen in the machine that
        is returned, and it has no support: `knowledge` of this one tells. A label or question
        that no state was ever shown stays `UNSEEN`.

        >>> import gymnasium as gym
        >>> import resolvent as rs
        >>> traces = rs.collect(gym.make("resolvent/TwoKeys-v0"), episodes=4, seed=0)
        >>> machine = rs.infer(traces).machines.transition
        >>> int((machine.transitions < 0).sum()), int((machine.guessing().transitions < 0).sum())
        (5, 0)
        """
        from resolvent.machines.guessing import guessing

        return guessing(self)

    def __eq__(self, other: object) -> bool:
        """Whether two machines are the same in every table; support and decisions do not count.

        Of answers that vary, the shares must be the same.
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
        from resolvent.machines.drawing import to_text

        return to_text(self)

    def _repr_svg_(self) -> str | None:
        """Draw the machine for a notebook, which shows its text where this gives None."""
        from resolvent.machines.picture import svg_or_nothing

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

    def _number(self, observation: Any, action: Any) -> int:
        """Return the number of a question, −1 for one with a symbol the machine never met."""
        seen = self.observations.get(as_symbol(observation))
        done = self.actions.get(as_symbol(action))
        return -1 if seen is None or done is None else seen * len(self.actions) + done

    def _several(self, state: State, observation: Any, action: Any) -> dict[Any, int]:
        """Return the counts of a row with more than one answer; nothing for another row."""
        if state is UNSEEN:
            return {}
        found = self.spread.rows.get((state, self._number(observation, action)), ())
        return {self.outputs[value]: count for value, count in found}

    @cached_property
    def _rows(self) -> AnswerRows:
        questions = len(self.observations) * len(self.actions)
        return AnswerRows(
            questions,
            by_state=self.output_state.astype(np.int64) * questions + self.output_question,
            asked=self.asked_state.astype(np.int64) * questions + self.asked_question,
        )

    @cached_property
    def _asked(self) -> frozenset[tuple[int, int]]:
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
    def _first_ways(self) -> dict[int, tuple[int, int]]:
        return first_ways(self.transitions)

    def _check_state(self, state: int) -> None:
        if type(state) is int and 0 <= state < self.states:  # asking for `Integral` takes long
            return
        whole = isinstance(state, Integral) and not isinstance(state, bool)
        if not whole or not 0 <= state < self.states:
            raise ModelError(
                f"state {shown(state)} does not exist: the states are 0 to {self.states - 1}"
            )


@dataclass(frozen=True, eq=False)
class TransitionMachine(Machine):
    """A machine that answers with the next observation."""

    predicts: str = "observation"

    __repr__ = Machine.__repr__


@dataclass(frozen=True, eq=False)
class RewardMachine(Machine):
    """A machine that answers with the reward."""

    predicts: str = "reward"

    __repr__ = Machine.__repr__

    @property
    def reward_digits(self) -> int | None:
        """The decimals that rewards were rounded to before they were compared; None for all."""
        return self.digits


_CLASSES: Final[dict[str, type[Machine]]] = {
    "observation": TransitionMachine,
    "reward": RewardMachine,
}


def machine_class(predicts: str) -> type[Machine]:
    """Return the class of machines that answer with a column.

    >>> machine_class("reward").__name__, machine_class("cost").__name__
    ('RewardMachine', 'Machine')
    """
    return _CLASSES.get(predicts, Machine)
