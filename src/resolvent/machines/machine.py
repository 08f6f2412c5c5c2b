"""A Dual Behavior Mealy Machine: labels move it, observation-action pairs question it.

TM and RM are the same thing but for what they answer. A machine is partial:
what was never seen is `UNSEEN`, never a guess.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent.errors import ModelError
from resolvent.machines.decision import Decision
from resolvent.traces.symbols import Label, Symbol, as_label, as_symbol
from resolvent.traces.vocabulary import DENSE, Codes, Vocabulary


class Unseen(Enum):
    """The type of `UNSEEN`."""

    UNSEEN = "unseen"

    def __repr__(self) -> str:
        return "UNSEEN"

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise TypeError("UNSEEN is neither true nor false: compare with `is UNSEEN`")


UNSEEN: Final = Unseen.UNSEEN
"""The answer of a machine that was never shown this."""

State: TypeAlias = int | Literal[Unseen.UNSEEN]

_WORTH_A_TABLE = 64
"""Up to so many entries for each key looked up, a table is cheaper than searching."""


class Answer(NamedTuple):
    """One entry of a machine's output table; `state` is None where all states agree."""

    state: int | None
    observation: Symbol
    action: Symbol
    output: Any


@dataclass(frozen=True, eq=False)
class Support:
    """How often the traces showed each entry of a machine's tables.

    Kept apart from the machine: repeating the traces changes this and nothing else.
    """

    transitions: NDArray[np.int64]
    outputs: NDArray[np.int64]
    constants: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Machine:
    """States 0 … n−1, of which 0 is initial, in canonical (breadth-first) order.

    `transitions[state, label]` is the next state, or −1 where it was never seen;
    labels in `trivial` loop on every state. Outputs that depend on the state are
    three parallel columns sorted by state and question; those that do not are
    `constant_*`. A question is `observation code * number of actions + action code`.
    `decisions` tell in order how the machine was found, where that is known.
    """

    kind: ClassVar[str] = "machine"

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

    @property
    def states(self) -> int:
        """How many states there are."""
        return int(self.transitions.shape[0])

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
        target = int(self.transitions[state, code])
        return UNSEEN if target < 0 else target

    def run(self, labels: Iterable[Iterable[str]], state: State = 0) -> State:
        """Return the state that reading labels one after another leads to, or `UNSEEN`.

        Paper: 𝒯*.
        """
        for label in labels:
            state = self.step(state, label)
        return state

    def output(self, state: State, observation: Any, action: Any) -> Any:
        """Return what the machine answers to an observation and an action, or `UNSEEN`.

        Paper: 𝒢.
        """
        seen = self.observations.get(as_symbol(observation))
        done = self.actions.get(as_symbol(action))
        if seen is None or done is None:
            return UNSEEN
        question = seen * len(self.actions) + done
        constant = self._constants.get(question)
        if constant is not None:
            return self.outputs[constant]
        if state is UNSEEN:
            return UNSEEN
        self._check_state(state)
        code = self._answers.get((state, question))
        return UNSEEN if code is None else self.outputs[code]

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
        return self._histories[state]

    def replay(self, labels_read: Codes, offsets: NDArray[np.int64]) -> Codes:
        """Return the state at every step of many traces; −1 from an unseen label on.

        `labels_read` holds codes of this machine's labels (see `codes_of`), −1
        where nothing is read, anything at or above their number for an unknown one.
        """
        table = np.ascontiguousarray(self.transitions.ravel())
        return _core.walk_states(table, len(self.labels), labels_read, offsets)

    def answer_many(self, states: Codes, questions: NDArray[np.int64]) -> Codes:
        """Return the output code for each state and question; −1 where unseen.

        A question of −1 stands for an observation or action the machine never met.
        """
        keys = states.astype(np.int64) * self._questions + questions
        found = look_up(self._output_keys, self.output_value, keys)
        found[(states < 0) | (questions < 0)] = -1
        constant = look_up(self.constant_question, self.constant_value, questions)
        return np.where(constant >= 0, constant, found)

    def __eq__(self, other: object) -> bool:
        """Whether two machines are the same in every table; support and decisions do not count."""
        if not isinstance(other, Machine):
            return NotImplemented
        return self._identity == other._identity and all(
            np.array_equal(mine, yours)
            for mine, yours in zip(self._tables, other._tables, strict=True)
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
        return (self.kind, *vocabularies, self.trivial)

    @property
    def _tables(self) -> tuple[NDArray[Any], ...]:
        return (
            self.transitions,
            self.output_state,
            self.output_question,
            self.output_value,
            self.constant_question,
            self.constant_value,
        )

    @property
    def _questions(self) -> int:
        return len(self.observations) * len(self.actions)

    @cached_property
    def _output_keys(self) -> NDArray[np.int64]:
        return self.output_state.astype(np.int64) * self._questions + self.output_question

    @cached_property
    def _answers(self) -> dict[tuple[int, int], int]:
        keys = zip(self.output_state.tolist(), self.output_question.tolist(), strict=True)
        return dict(zip(keys, self.output_value.tolist(), strict=True))

    @cached_property
    def _constants(self) -> dict[int, int]:
        columns = (self.constant_question.tolist(), self.constant_value.tolist())
        return dict(zip(*columns, strict=True))

    def reachable(self) -> list[int]:
        """Return the states that labels lead to from the initial one."""
        return sorted(self._histories)

    @cached_property
    def _histories(self) -> dict[int, tuple[Label, ...]]:
        histories: dict[int, tuple[Label, ...]] = {0: ()}
        queue = [0]
        for state in queue:
            for code, target in enumerate(self.transitions[state].tolist()):
                if target >= 0 and target not in histories:
                    histories[target] = (*histories[state], self.labels[code])
                    queue.append(target)
        return histories

    def _check_state(self, state: int) -> None:
        if not 0 <= state < self.states:
            raise ModelError(f"state {state} does not exist: the states are 0 to {self.states - 1}")


@dataclass(frozen=True, eq=False)
class TransitionMachine(Machine):
    """A machine that answers with the next observation."""

    kind: ClassVar[str] = "transition"

    __repr__ = Machine.__repr__


@dataclass(frozen=True, eq=False)
class RewardMachine(Machine):
    """A machine that answers with the reward.

    When it is `supplemented`, an observation is a pair (observation, state of
    the Transition Machine). Rewards were rounded to `reward_digits` decimals
    before they were compared, unless that is None.
    """

    kind: ClassVar[str] = "reward"

    supplemented: bool = False
    reward_digits: int | None = None

    __repr__ = Machine.__repr__

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity, self.supplemented, self.reward_digits)


def look_up(keys: NDArray[np.int64], values: Codes, wanted: NDArray[np.int64]) -> Codes:
    """Return for each wanted key its value, −1 where there is none; `keys` are sorted."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int32)
    size = int(keys[-1]) + 1
    if size <= min(DENSE, _WORTH_A_TABLE * len(wanted)):
        table = np.full(size + 1, -1, np.int32)  # the last entry answers for all other keys
        table[keys] = values
        return table[np.where((wanted >= 0) & (wanted < size), wanted, size)]
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    return np.where(keys[at] == wanted, values[at], np.int32(-1))
