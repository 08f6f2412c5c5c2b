"""Machines + traces → the model they define: every situation that can be reached, and its steps.

A situation is an observation with the states of both machines. A step from it is
known when the machines tell the next observation and the reward, the traces tell
the label read then and whether the episode ends, and both machines know where
that label leads. Everything else is unknown, never guessed.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.control.planning.ending import ENDS, GOES_ON, SOMETIMES, Ending
from resolvent.control.planning.labelling import Labelling
from resolvent.control.planning.steps import Keys, Lookup, Space, Steps
from resolvent.errors import ModelError
from resolvent.machines import Machine, MachinePair
from resolvent.replay import StepsAsked, states_at_steps, steps_asked
from resolvent.samples import rounded
from resolvent.traces import Label, Symbol, TraceSet, Vocabulary, label_text, symbol_text
from resolvent.traces.vocabulary import Codes, codes_of

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Model:
    """The situations reachable from where the traces began, numbered as they are reached.

    `following`, `reward`, `ends`, `known` and `sometimes_ends` have a row for each
    situation and a column for each action. `following` is −1 where the step ends
    the episode or is not known, `reward` is NaN where it is not known. Where the
    same step ended some episodes and not others (`sometimes_ends`), termination
    is no function of the situation, and the step is not known.
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    observation: Codes
    transition_state: Codes
    reward_state: Codes
    following: Codes
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    starts: Codes
    start_counts: NDArray[np.int64]
    reward_range: tuple[float, float]

    @classmethod
    def of(cls, pair: MachinePair, traces: TraceSet, *, trust_constants: bool = False) -> "Model":
        """Build the model of the world that the traces come from.

        The machines may have been inferred from other traces of that world. The
        traces tell where episodes begin, which labels follow and where they end.
        A machine's constant answers count only where they are witnessed, by these
        traces or those the machine was inferred from, unless they are trusted.

        >>> from resolvent.environments import House
        >>> from resolvent.pipeline import infer
        >>> from resolvent.traces.collecting import collect
        >>> traces = collect(House(), episodes=200, seed=0)
        >>> model = Model.of(infer(traces).machines, traces)
        >>> len(model), model.unknown, model.situation("cyanroom", 1, 1)
        (9, 0, 4)
        """
        if not len(traces):
            raise ModelError(
                "there are no traces: a model needs some, to know where episodes begin"
            )
        _check_acquainted(pair, traces)
        told = steps_asked(pair, traces, states_at_steps(pair, traces))
        asked = told["transition"], told["reward"]
        _check_predictions(pair, traces, asked)
        pair = pair.replacing(*(one.machine.witnessing(one.states, one.questions) for one in asked))
        space = Space.of(pair, traces)
        steps = Steps.of(asked, traces, space)
        starts, counts = _starts(steps, traces, space)
        situations, answers = _explored(
            starts, _Stepping(pair, traces, steps, space, trust_constants)
        )
        order = np.argsort(situations)
        paid = {*pair.reward.outputs, *rounded(traces.rewards, pair.reward.reward_digits)}
        return cls(
            space.observations,
            space.actions,
            *space.parts(situations),
            following=_places(answers.following, situations, order),
            reward=answers.reward,
            ends=answers.ends,
            known=answers.known,
            sometimes_ends=answers.sometimes_ends,
            starts=_places(starts, situations, order),
            start_counts=counts,
            reward_range=(min(paid), max(paid)),
        )

    def __len__(self) -> int:
        return len(self.observation)

    @property
    def unknown(self) -> int:
        """How many steps, of situation and action, are not known."""
        return int(np.count_nonzero(~self.known))

    def situation(
        self, observation: Symbol, transition_state: int, reward_state: int
    ) -> int | None:
        """Return the number of a situation, or None when it is not one of the model's."""
        return self._numbers.get((observation, transition_state, reward_state))

    def named(self, situation: int) -> tuple[Symbol, int, int]:
        """Return the observation and the states of a situation."""
        return (
            self.observations[int(self.observation[situation])],
            int(self.transition_state[situation]),
            int(self.reward_state[situation]),
        )

    @cached_property
    def _numbers(self) -> dict[tuple[Symbol, int, int], int]:
        return {self.named(number): number for number in range(len(self))}


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """What happens in some situations, a row for each, under every action, a column for each.

    `following` holds the numbers that a `Space` gives, −1 where there is none.
    """

    following: Keys
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags


class _Stepping:
    """Asks both machines about all actions in many situations at once."""

    def __init__(
        self, pair: MachinePair, traces: TraceSet, steps: Steps, space: Space, assumed: bool
    ) -> None:
        self.pair, self.space, self.assumed = pair, space, assumed
        self.labelling = Labelling.of(steps, traces, pair.timing, space)
        self.ending = Ending.of(pair, steps, space)
        self.rewards = np.array([*pair.reward.outputs, np.nan])  # −1 is the last one
        self.observed = codes_of(space.observations, pair.transition.observations, -1)
        self.arrived = np.append(codes_of(pair.transition.outputs, space.observations, -1), -1)
        self.paired = _paired(pair, space)
        self.moves = [_moves(machine, traces.labels) for machine in (pair.transition, pair.reward)]

    def __call__(self, situations: Keys) -> _Answers:
        """Return what happens in each situation under each action."""
        actions = len(self.space.actions)
        shape = len(situations), actions
        o, q, u = (np.repeat(part, actions) for part in self.space.parts(situations))
        a = np.tile(np.arange(actions, dtype=np.int32), len(situations))
        transition, reward = self.pair.transition, self.pair.reward
        following = self.arrived[self._answers(transition, q, self.observed[o], a)]
        asked = self.paired(np.int64(o) * self.space.transition_states + q)
        paid = self.rewards[self._answers(reward, u, asked, a)]
        label = self.labelling((o, q, u, a, following))
        next_q, next_u = self.moves[0][q, label], self.moves[1][u, label]
        ending = self.ending(o, q, u, a)
        ends = (ending == ENDS) & ~np.isnan(paid)
        goes_on = (ending == GOES_ON) & ~np.isnan(paid)
        goes_on &= (following >= 0) & (next_q >= 0) & (next_u >= 0)
        known = ends | goes_on
        return _Answers(
            np.where(goes_on, self.space.situation(following, next_q, next_u), -1).reshape(shape),
            np.where(known, paid, np.nan).reshape(shape),
            ends.reshape(shape),
            known.reshape(shape),
            (ending == SOMETIMES).reshape(shape),
        )

    def _answers(self, machine: Machine, states: Codes, observed: Codes, action: Codes) -> Codes:
        done = codes_of(self.space.actions, machine.actions, -1)[action]
        questions = np.int64(observed) * len(machine.actions) + done
        questions[(observed < 0) | (done < 0)] = -1
        return machine.answer_many(states, questions, assumed=self.assumed)


def _check_predictions(
    pair: MachinePair, traces: TraceSet, asked: tuple[StepsAsked, StepsAsked]
) -> None:
    for one in asked:
        predicted = one.machine.answer_many(one.states, one.questions)
        if np.any((predicted >= 0) & (predicted != one.outputs)):
            raise ModelError(
                f"{pair.score(traces).first_mismatch}; this environment is not deterministic under "
                f"these labels, or these are not its machines"
            )


def _check_acquainted(pair: MachinePair, traces: TraceSet) -> None:
    """Refuse traces of which the machines know no observation at all."""
    shown, known = traces.observations, pair.transition.observations
    if not any(symbol in known for symbol in shown):
        raise ModelError(
            f"the machines know no observation of the traces, such as {symbol_text(shown[0])} "
            f"(they know {symbol_text(known[0])}): these are traces of another world"
        )


def _paired(pair: MachinePair, space: Space) -> Lookup:
    """Return what the Reward Machine calls an observation in a state of the other machine."""
    states = space.transition_states
    called: list[Any] = list(pair.reward.observations)
    if not pair.reward.supplemented:
        called = [(one, state) for one in called for state in range(states)]
    codes = np.arange(len(called), dtype=np.int32)
    if not pair.reward.supplemented:
        codes //= states
    seen = codes_of((one for one, _ in called), space.observations, -1)
    keys = np.int64(seen) * states + np.array([state for _, state in called], np.int64)
    return Lookup.of(keys[seen >= 0], codes[seen >= 0])


def _moves(machine: Machine, labels: Vocabulary[Label]) -> Codes:
    """Return the state that each label of the traces leads to; −1, and for label −1, unknown."""
    codes = np.append(codes_of(labels, machine.labels, -1), -1)
    lost = np.full((machine.states, 1), -1, np.int32)
    return np.hstack([machine.transitions, lost])[:, codes]


def _starts(steps: Steps, traces: TraceSet, space: Space) -> tuple[Keys, NDArray[np.int64]]:
    """Return the situations in which traces begin, and how many begin in each."""
    rows = traces.offsets[:-1]
    q, u = steps.transition_state[rows], steps.reward_state[rows]
    lost = np.flatnonzero((q < 0) | (u < 0))
    if len(lost):
        trace = int(lost[0])
        first = label_text(traces.labels[int(traces.label_codes[rows[trace] + trace])])
        raise ModelError(
            f"trace {trace} begins with label {first}, which the machines were never shown there: "
            f"infer them from traces that begin so"
        )
    return np.unique(space.situation(steps.observation[rows], q, u), return_counts=True)


def _explored(starts: Keys, stepping: _Stepping) -> tuple[Keys, _Answers]:
    """Return every situation that known steps lead to, and what happens there."""
    met: set[int] = set()
    frontier, layers, answers = starts, [], []
    while len(frontier):
        met.update(frontier.tolist())
        layers.append(frontier)
        answers.append(stepping(frontier))
        reached = np.unique(answers[-1].following)
        frontier = np.array([one for one in reached.tolist() if one not in met and one >= 0], int)
    return np.concatenate(layers), _Answers(
        *(
            np.concatenate([getattr(layer, name) for layer in answers])
            for name in _Answers.__slots__
        )
    )


def _places(wanted: Keys, situations: Keys, order: NDArray[np.int64]) -> Codes:
    """Return where each wanted situation stands; −1 stays."""
    found = order[np.searchsorted(situations, wanted, sorter=order) % len(situations)]
    return np.where(wanted < 0, -1, found).astype(np.int32)
