"""Machines + traces → the model they define."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.by_value import ByValue
from resolvent.errors import ModelError
from resolvent.limits import check_table
from resolvent.machines import Machine, Machines
from resolvent.planning.label_model import (
    ENDS,
    GOES_ON,
    SOMETIMES,
    UNKNOWN,
    Ending,
    Labelling,
    LabelsByChance,
)
from resolvent.planning.steps import (
    Keys,
    Lookup,
    Situation,
    Space,
    Steps,
    Taking,
    are_known,
    moves_of,
    places_of,
    starts_of,
    that_matter,
)
from resolvent.planning.stochastic_model import Branching, Chances, reached
from resolvent.progress import Listener
from resolvent.replay import (
    Alphabets,
    Corpus,
    Replay,
    Tables,
    in_machine_codes,
    score_of,
    through,
    whole,
)
from resolvent.samples import rounded
from resolvent.traces import Label, Symbol, TraceFolder, TraceSet, Vocabulary, symbol_text
from resolvent.traces.column_names import REWARD, TERMINATED
from resolvent.traces.given import as_traces
from resolvent.traces.vocabulary import Codes, codes_of
from resolvent.wording import amount
from resolvent.workers import Threads, Workers


@dataclass(frozen=True, eq=False)
class Model(ByValue):
    """The situations reachable from where the traces began, numbered as they are reached.

    `observation` and `states`, by the kinds of the machines, say what each consists of.
    `following`, `reward`, `ends`, `known` and `sometimes_ends` have a row for each
    situation and a column for each action. `following` is −1 where the step ends
    the episode or is not known, `reward` is NaN where it is not known. Where the
    same step ended some episodes and not others (`sometimes_ends`), termination
    is no function of the situation, and the step is not known. `read` is the label that is
    read after a step, `read_first` the one at each of the starts, as codes of `labels`; −1
    where nothing is read, or chance has a part in it.

    Where machines answer with chance, or labels follow from nothing that they know,
    `chances` hold all that may come of a step. Then
    `following` is the likeliest situation to follow, −1 where an end is likelier; `reward` is
    the mean of what was paid; a step `ends` if it always did, and one that sometimes does is
    known like any other. `steps` are those of the traces that it was built from.
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
    labels: Vocabulary[Label]
    read: Codes
    read_first: Codes
    chances: Chances | None = None
    steps: int = 0

    @classmethod
    def of(
        cls,
        machines: Machines,
        traces: TraceSet | TraceFolder,
        *,
        trust_constants: bool = False,
        known: Corpus | None = None,
        workers: Workers | None = None,
        progress: Listener | None = None,
    ) -> "Model":
        """Build the model of the world that the traces come from.

        The machines may have been inferred from other traces of that world. The
        traces tell where episodes begin, which labels follow and where they end.
        A machine's constant answers count only in states in which these traces ask
        for them, unless they are trusted. A scanned place is gone through twice, or once where
        its values are `known`, as those of the corpus that machines were inferred from are.
        `workers` do so, by default threads, and `progress` is told how far they are.

        >>> from resolvent.environments import House
        >>> from resolvent.pipeline import infer
        >>> from resolvent.traces.live.collecting import collect
        >>> traces = collect(House(), episodes=200, seed=0)
        >>> model = Model.of(infer(traces).machines, traces)
        >>> len(model), model.unknown, model.situation("cyanroom", 1, 1)
        (9, 0, 4)
        """
        given = as_traces(traces)
        if isinstance(given, TraceSet) and not len(given):
            raise ModelError(
                "there are no traces: a model needs some, to know where episodes begin"
            )
        numbers = machines.senses.discretise
        if numbers is not None and numbers.of == "action":
            raise ModelError(
                "the machines know of actions only in which interval their numbers lie, so that "
                "no plan can say what to do: give actions that are symbols"
            )
        acting = that_matter(machines)
        seen = acting.replacing(senses=machines.senses)
        corpus = whole(seen, given, workers or Threads(), known=known, progress=progress)
        _check_acquainted(acting, corpus.alphabets)
        by_chance = any(one.is_noisy for one in acting.values())
        space, tables = Space.of(acting, corpus.alphabets), Tables.of(acting, corpus.alphabets)
        while True:
            rewards, paid = _paid(acting, given, corpus.alphabets, by_chance)
            taken = through(corpus, Taking(tables, by_chance, paid), progress)
            shown = replace(taken.shown, alphabets=corpus.alphabets)
            steps = Steps.of(taken, corpus.alphabets, space)
            if by_chance:
                break
            _check_predictions(acting, shown)
            moves = [moves_of(one, steps.labels) for one in acting.values()]
            try:
                labelling = Labelling.of(steps, acting.timing, space, moves)
                break
            except LabelsByChance:  # what is paid has to be counted, too
                by_chance = True
        starts, counts, first = starts_of(steps, space)
        if by_chance:
            ending = Ending.of(machines, steps, space)
            pay = rewards[steps.paid]
            branching = Branching(acting, steps, pay, space, ending, trust_constants)
            situations, answers, chances = reached(starts, branching)
        else:
            if not trust_constants:
                acting = acting.replacing(*(_as_asked(one, shown) for one in acting.values()))
            told = None if TERMINATED in acting else Ending.of(machines, steps, space)
            stepping = Stepping(acting, steps.labels, space, labelling, told, trust_constants)
            (situations, answers), chances = explored(starts, stepping), None
        observation, states = space.parts(situations)
        order = np.argsort(situations)
        amounts = {*acting.reward.outputs, *rewards.tolist()}
        return cls(
            space.observations,
            space.actions,
            observation,
            dict(zip(acting, states, strict=True)),
            following=places_of(answers.following, situations, order),
            reward=answers.reward,
            ends=answers.ends,
            known=answers.known,
            sometimes_ends=answers.sometimes_ends,
            starts=places_of(starts, situations, order),
            start_counts=counts,
            reward_range=(min(amounts), max(amounts)),
            labels=corpus.alphabets.labels,
            read=answers.read,
            read_first=first if acting.timing.reads_at_reset else np.full_like(first, -1),
            chances=chances,
            steps=shown.steps,
        )

    def __len__(self) -> int:
        return len(self.observation)

    def __repr__(self) -> str:
        return (
            f"Model({amount(len(self), 'situation')}, {amount(len(self.actions), 'action')}, "
            f"{self.unknown:,} of {self.known.size:,} steps unknown)"
        )

    @property
    def traces(self) -> int:
        """How many traces it was built from."""
        return int(self.start_counts.sum())

    def at_starts(self, values: NDArray[np.float64]) -> float:
        """Return the mean of situations' values over where the traces began."""
        return float(np.average(values[self.starts], weights=self.start_counts))

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
    if mismatch is None:
        return
    if machines.doubt:
        raise ModelError(
            f"{mismatch}; labels do not tell the states ({machines.doubt}), and a plan goes by "
            f"labels: learn how to act by q_learning, with AugmentObservation(mode='belief')"
        )
    raise ModelError(
        f"{mismatch}; this environment is not deterministic under these labels, or these are not "
        f"its machines, or the trace is broken: then leave it out"
    )


def _paid(
    machines: Machines, given: TraceSet | TraceFolder, alphabets: Alphabets, noisy: bool
) -> tuple[NDArray[np.float64], Codes | None]:
    """Return what steps pay at all; and codes of it by step, if traces pay more than levels say.

    Where rewards vary around levels, their mean is that of what was really paid. In files that
    may be as many values as steps, so that there the levels count.
    """
    digits = machines.reward.reward_digits
    if noisy and isinstance(given, TraceSet):
        return np.array(rounded(given.rewards, digits)), given.reward_codes
    return np.array(rounded(alphabets.columns[REWARD], digits)), None


def _check_acquainted(machines: Machines, traces: Alphabets) -> None:
    """Refuse traces of which the machines know no observation at all."""
    shown, known = traces.observations, machines.transition.observations
    if not any(symbol in known for symbol in shown):
        raise ModelError(
            f"the machines know no observation of the traces, such as {symbol_text(shown[0])} "
            f"(they know {symbol_text(known[0])}): these are traces of another world"
        )


Flags = NDArray[np.bool_]

_STEP_BYTES = 40
"""What an action in a situation takes: its row of `Answers`, and as much until it is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What happens in some situations, a row for each, under every action, a column for each.

    `following` holds the numbers that a `Space` gives, −1 where there is none. `read` is the
    label that is read then, −1 where none is, or any of several.
    """

    following: Keys
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    read: Codes


class Stepping:
    """Asks all machines about all actions in many situations at once."""

    def __init__(
        self,
        machines: Machines,
        labels: Vocabulary[Label],
        space: Space,
        labelling: Labelling,
        ending: Ending | None,
        assumed: bool,
    ) -> None:
        self.machines, self.space, self.assumed = machines, space, assumed
        self.labelling, self.ending = labelling, ending
        self.asking = {kind: _Asking(one, machines, space) for kind, one in machines.items()}
        self.moves = [moves_of(machine, labels) for machine in machines.values()]
        # In what follows, −1 is the last one.
        transition, reward = machines.transition, machines.reward
        self.arrived = np.append(codes_of(transition.outputs, space.observations, -1), -1)
        self.rewards = np.array([*reward.outputs, np.nan])
        ends = machines[TERMINATED].outputs if ending is None else ()
        self.verdicts = np.array([*(ENDS if one else GOES_ON for one in ends), UNKNOWN], np.int32)

    def __call__(self, situations: Keys) -> Answers:
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
        return Answers(
            np.where(goes_on, self.space.situation(following, after), -1).reshape(shape),
            np.where(known, paid, np.nan).reshape(shape),
            ends.reshape(shape),
            known.reshape(shape),
            (ending == SOMETIMES).reshape(shape),
            np.where(goes_on, label, -1).astype(np.int32).reshape(shape),
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


def explored(starts: Keys, stepping: Stepping) -> tuple[Keys, Answers]:
    """Return every situation that known steps lead to, and what happens there."""
    met: set[int] = set()
    frontier, layers, answers = starts, [], []
    while len(frontier):
        met.update(frontier.tolist())
        layers.append(frontier)
        check_table(len(met), len(stepping.space.actions), _STEP_BYTES, "situations by actions")
        answers.append(stepping(frontier))
        reached = np.unique(answers[-1].following)
        frontier = np.array([one for one in reached.tolist() if one not in met and one >= 0], int)
    return np.concatenate(layers), Answers(
        *(np.concatenate([getattr(layer, name) for layer in answers]) for name in Answers.__slots__)
    )
