"""Machines + traces → the model they define: every situation that can be reached, and its steps.

A situation is an observation with the states of the machines that matter for acting.
A step from it is known when the machines tell the next observation and the reward, the
traces tell the label read then, a machine or the traces tell whether the episode ends,
and all machines know where that label leads. Everything else is unknown, never guessed.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.control.by_value import ByValue
from resolvent.control.planning.ending import ENDS, GOES_ON, SOMETIMES, UNKNOWN, Ending
from resolvent.control.planning.labelling import Labelling
from resolvent.control.planning.situations import Situation, that_matter
from resolvent.control.planning.steps import Keys, Lookup, Space, Steps, are_known
from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines
from resolvent.replay import Replay, in_machine_codes, replay_traces, score_of
from resolvent.samples import rounded
from resolvent.traces import Label, Symbol, TraceSet, Vocabulary, label_text, symbol_text
from resolvent.traces.column_names import TERMINATED
from resolvent.traces.vocabulary import Codes, codes_of
from resolvent.wording import amount

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Model(ByValue):
    """The situations reachable from where the traces began, numbered as they are reached.

    `observation` and `states`, by the kinds of the machines, say what each consists of.
    `following`, `reward`, `ends`, `known` and `sometimes_ends` have a row for each
    situation and a column for each action. `following` is −1 where the step ends
    the episode or is not known, `reward` is NaN where it is not known. Where the
    same step ended some episodes and not others (`sometimes_ends`), termination
    is no function of the situation, and the step is not known.
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    observation: Codes
    states: dict[str, Codes]
    following: Codes
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    starts: Codes
    start_counts: NDArray[np.int64]
    reward_range: tuple[float, float]

    @classmethod
    def of(cls, machines: Machines, traces: TraceSet, *, trust_constants: bool = False) -> "Model":
        """Build the model of the world that the traces come from.

        The machines may have been inferred from other traces of that world. The
        traces tell where episodes begin, which labels follow and where they end.
        A machine's constant answers count only in states in which these traces ask
        for them, unless they are trusted.

        >>> from resolvent.environments import House
        >>> from resolvent.pipeline import infer
        >>> from resolvent.traces.live.collecting import collect
        >>> traces = collect(House(), episodes=200, seed=0)
        >>> model = Model.of(infer(traces).machines, traces)
        >>> len(model), model.unknown, model.situation("cyanroom", 1, 1)
        (9, 0, 4)
        """
        if not len(traces):
            raise ModelError(
                "there are no traces: a model needs some, to know where episodes begin"
            )
        numbers = machines.senses.discretise
        if numbers is not None and numbers.of == "action":
            raise ModelError(
                "the machines know of actions only in which interval their numbers lie, so that "
                "no plan can say what to do: give actions that are symbols"
            )
        acting, traces = that_matter(machines), machines.senses.on(traces)
        for one in acting.values():
            if one.is_noisy:
                raise ModelError(
                    f"the {one.kind} machine answers with chance ({one.noise:.1%} of the answers "
                    f"are not the most likely one), and plans are for worlds without: learn by "
                    f"rs.q_learning, or another learner, in AugmentObservation"
                )
        _check_acquainted(acting, traces)
        shown = replay_traces(acting, traces, states=True)
        _check_predictions(acting, shown)
        if not trust_constants:
            acting = acting.replacing(*(_as_asked(one, shown) for one in acting.values()))
        space = Space.of(acting, traces)
        steps = Steps.of(shown, traces, space)
        ending = None if TERMINATED in acting else Ending.of(machines, steps, space)
        labelling = Labelling.of(steps, traces, acting.timing, space)
        starts, counts = _starts(steps, traces, space)
        stepping = _Stepping(acting, traces, space, labelling, ending, trust_constants)
        situations, answers = _explored(starts, stepping)
        observation, states = space.parts(situations)
        order = np.argsort(situations)
        paid = {*acting.reward.outputs, *rounded(traces.rewards, acting.reward.reward_digits)}
        return cls(
            space.observations,
            space.actions,
            observation,
            dict(zip(acting, states, strict=True)),
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

    def __repr__(self) -> str:
        return (
            f"Model({amount(len(self), 'situation')}, {amount(len(self.actions), 'action')}, "
            f"{self.unknown:,} of {self.known.size:,} steps unknown)"
        )

    @property
    def unknown(self) -> int:
        """How many steps, of situation and action, are not known."""
        return int(np.count_nonzero(~self.known))

    @property
    def transition_state(self) -> Codes:
        """The state of the Transition Machine in every situation."""
        return self.states["transition"]

    @property
    def reward_state(self) -> Codes:
        """The state of the Reward Machine in every situation."""
        return self.states["reward"]

    def situation(self, observation: Symbol, *states: int) -> int | None:
        """Return the number of a situation, or None when it is not one of the model's."""
        return self._numbers.get((observation, *states))

    def named(self, situation: int) -> Situation:
        """Return the observation and the states of a situation."""
        states = (int(column[situation]) for column in self.states.values())
        return (self.observations[int(self.observation[situation])], *states)

    @cached_property
    def _numbers(self) -> dict[Situation, int]:
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
    """Asks all machines about all actions in many situations at once."""

    def __init__(
        self,
        machines: Machines,
        traces: TraceSet,
        space: Space,
        labelling: Labelling,
        ending: Ending | None,
        assumed: bool,
    ) -> None:
        self.machines, self.space, self.assumed = machines, space, assumed
        self.labelling, self.ending = labelling, ending
        self.asking = {kind: _Asking(one, machines, space) for kind, one in machines.items()}
        self.moves = [_moves(machine, traces.labels) for machine in machines.values()]
        # In what follows, −1 is the last one.
        transition, reward = machines.transition, machines.reward
        self.arrived = np.append(codes_of(transition.outputs, space.observations, -1), -1)
        self.rewards = np.array([*reward.outputs, np.nan])
        ends = machines[TERMINATED].outputs if ending is None else ()
        self.verdicts = np.array([*(ENDS if one else GOES_ON for one in ends), UNKNOWN], np.int32)

    def __call__(self, situations: Keys) -> _Answers:
        """Return what happens in each situation under each action."""
        actions = len(self.space.actions)
        shape = len(situations), actions
        observation, states = self.space.parts(situations)
        o, s = np.repeat(observation, actions), [np.repeat(one, actions) for one in states]
        a = np.tile(np.arange(actions, dtype=np.int32), len(situations))
        answers = {
            kind: machine.answer_many(own, self.asking[kind](o, s[0], a), assumed=self.assumed)
            for (kind, machine), own in zip(self.machines.items(), s, strict=True)
        }
        following = self.arrived[answers["transition"]]
        paid = self.rewards[answers["reward"]]
        ending = self._ending(o, s, a, answers)
        label = self.labelling((o, s, a, following))
        after = [moves[own, label] for moves, own in zip(self.moves, s, strict=True)]
        ends = (ending == ENDS) & ~np.isnan(paid)
        goes_on = (ending == GOES_ON) & ~np.isnan(paid) & (following >= 0) & are_known(after)
        known = ends | goes_on
        return _Answers(
            np.where(goes_on, self.space.situation(following, after), -1).reshape(shape),
            np.where(known, paid, np.nan).reshape(shape),
            ends.reshape(shape),
            known.reshape(shape),
            (ending == SOMETIMES).reshape(shape),
        )

    def _ending(
        self, observation: Codes, states: list[Codes], action: Codes, answers: dict[str, Codes]
    ) -> Codes:
        if self.ending is None:  # a machine tells
            return self.verdicts[answers[TERMINATED]]
        return self.ending(observation, states, action)


class _Asking:
    """Turns observations, states of the Transition Machine and actions into one's questions."""

    def __init__(self, machine: Machine, machines: Machines, space: Space) -> None:
        self._actions = len(machine.actions)
        self._done = codes_of(space.actions, machine.actions, -1)
        self._paired = machines.transition.states if machine.supplemented else None
        if self._paired is None:
            self._seen = Lookup.of(
                np.arange(len(space.observations)),
                codes_of(space.observations, machine.observations, -1),
            )
        else:
            pairs: list[Any] = list(machine.observations)
            seen = codes_of((one for one, _ in pairs), space.observations, -1)
            keys = np.int64(seen) * self._paired + np.array([state for _, state in pairs], np.int64)
            codes = np.arange(len(pairs), dtype=np.int32)
            self._seen = Lookup.of(keys[seen >= 0], codes[seen >= 0])

    def __call__(self, observation: Codes, transition_state: Codes, action: Codes) -> Keys:
        """Return the numbers of the machine's questions, −1 where it never met them."""
        keys = observation.astype(np.int64)
        if self._paired is not None:
            keys = keys * self._paired + transition_state
        seen, done = self._seen(keys), self._done[action]
        questions = np.int64(seen) * self._actions + done
        questions[(seen < 0) | (done < 0)] = -1
        return questions


def _as_asked(machine: Machine, shown: Replay) -> Machine:
    """Return a machine whose constant answers are witnessed where these traces ask for them."""
    rows = shown.machines[machine.kind].known
    asked = in_machine_codes(machine, rows, shown.alphabets, shown.sizes["transition"])
    nowhere = replace(
        machine, asked_state=np.empty(0, np.int32), asked_question=np.empty(0, np.int64)
    )
    return nowhere.witnessing(np.ascontiguousarray(rows["state"]), asked.question)


def _check_predictions(machines: Machines, shown: Replay) -> None:
    mismatch = score_of(machines, shown).first_mismatch
    if mismatch is not None:
        raise ModelError(
            f"{mismatch}; this environment is not deterministic under these labels, or these are "
            f"not its machines"
        )


def _check_acquainted(machines: Machines, traces: TraceSet) -> None:
    """Refuse traces of which the machines know no observation at all."""
    shown, known = traces.observations, machines.transition.observations
    if not any(symbol in known for symbol in shown):
        raise ModelError(
            f"the machines know no observation of the traces, such as {symbol_text(shown[0])} "
            f"(they know {symbol_text(known[0])}): these are traces of another world"
        )


def _moves(machine: Machine, labels: Vocabulary[Label]) -> Codes:
    """Return the state that each label of the traces leads to; −1, and for label −1, unknown."""
    codes = np.append(codes_of(labels, machine.labels, -1), -1)
    lost = np.full((machine.states, 1), -1, np.int32)
    return np.hstack([machine.transitions, lost])[:, codes]


def _starts(steps: Steps, traces: TraceSet, space: Space) -> tuple[Keys, NDArray[np.int64]]:
    """Return the situations in which traces begin, and how many begin in each."""
    rows = traces.offsets[:-1]
    states = [column[rows] for column in steps.states]
    lost = np.flatnonzero(~are_known(states))
    if len(lost):
        trace = int(lost[0])
        first = label_text(traces.labels[int(traces.label_codes[rows[trace] + trace])])
        raise ModelError(
            f"trace {trace} begins with label {first}, which the machines were never shown there: "
            f"infer them from traces that begin so"
        )
    return np.unique(space.situation(steps.observation[rows], states), return_counts=True)


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
