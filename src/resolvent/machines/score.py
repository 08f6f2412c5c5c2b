"""Replay: machines + traces → how many steps they predict right, wrong, or not at all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError
from resolvent.machines.knowledge import ASSUMED_CODE, UNSEEN_CODE
from resolvent.machines.machine import Machine, RewardMachine, TransitionMachine
from resolvent.samples import Histories, LabelTiming, rounded_rewards
from resolvent.traces.symbols import Symbol
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, codes_of, distinct_pairs


@dataclass(frozen=True)
class Mismatch:
    """A step that a machine predicts wrongly, by what it was shown or by what it assumes."""

    machine: str
    trace: int
    step: int
    observation: Symbol
    action: Symbol
    state: int
    predicted: Any
    actual: Any
    assumed: bool = False

    def __str__(self) -> str:
        where = f"in state {self.state}" if self.state >= 0 else "in a state not known"
        said = f"it predicts {self.predicted!r} for ({self.observation!r}, {self.action!r})"
        if self.assumed:
            said += ", which it only assumes"
        return (
            f"{self.machine} machine, trace {self.trace}, step {self.step}: {where} {said}, "
            f"the trace says {self.actual!r}"
        )


@dataclass(frozen=True)
class MachineScore:
    """How many steps one machine predicts, and how well.

    `right` and `wrong` count what was witnessed in the state of the step,
    `assumed_right` and `assumed_wrong` what is only assumed there (see `Knowledge`),
    and `unseen` what the machine does not predict.
    """

    right: int = 0
    wrong: int = 0
    assumed_right: int = 0
    assumed_wrong: int = 0
    unseen: int = 0
    first_mismatch: Mismatch | None = None

    @property
    def steps(self) -> int:
        """All steps replayed."""
        return self.all_right + self.all_wrong + self.unseen

    @property
    def all_right(self) -> int:
        """Steps predicted right, witnessed or assumed."""
        return self.right + self.assumed_right

    @property
    def all_wrong(self) -> int:
        """Steps predicted wrong, witnessed or assumed."""
        return self.wrong + self.assumed_wrong

    def then(self, later: "MachineScore", first: int) -> "MachineScore":
        """Return this score and one of later traces together; `first` traces came before those."""
        mismatch = self.first_mismatch
        if mismatch is None and later.first_mismatch is not None:
            mismatch = replace(later.first_mismatch, trace=later.first_mismatch.trace + first)
        return MachineScore(
            self.right + later.right,
            self.wrong + later.wrong,
            self.assumed_right + later.assumed_right,
            self.assumed_wrong + later.assumed_wrong,
            self.unseen + later.unseen,
            mismatch,
        )

    def __str__(self) -> str:
        assumed = {"assumed right": self.assumed_right, "assumed wrong": self.assumed_wrong}
        counts = {
            "right": self.right,
            "wrong": self.wrong,
            **{name: count for name, count in assumed.items() if count},
            "unseen": self.unseen,
        }
        return ", ".join(f"{name} {count}" for name, count in counts.items())


@dataclass(frozen=True)
class Score(Mapping[str, MachineScore]):
    """The scores of machines on the same traces, by the kind of machine."""

    scores: dict[str, MachineScore] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> MachineScore:
        return self.scores[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def __hash__(self) -> int:
        return hash(frozenset(self.scores.items()))

    @property
    def transition(self) -> MachineScore:
        """The score of the Transition Machine."""
        return self._of("transition")

    @property
    def reward(self) -> MachineScore:
        """The score of the Reward Machine."""
        return self._of("reward")

    @property
    def perfect(self) -> bool:
        """Whether every step is predicted, witnessed or assumed, and right."""
        return all(one.all_right == one.steps for one in self.values())

    @property
    def first_mismatch(self) -> Mismatch | None:
        """The earliest step that any machine predicts wrongly."""
        return min(
            (one.first_mismatch for one in self.values() if one.first_mismatch is not None),
            key=lambda one: (one.trace, one.step),
            default=None,
        )

    def then(self, later: "Score", first: int) -> "Score":
        """Return these scores and those of later traces together; `first` traces came before those.

        >>> later = {"transition": MachineScore(right=5, unseen=1), "reward": MachineScore(6)}
        >>> print(Score().then(Score(later), 0))
        transition right 5, wrong 0, unseen 1
        reward     right 6, wrong 0, unseen 0
        """
        nothing = MachineScore()
        return Score(
            {
                kind: self.get(kind, nothing).then(later.get(kind, nothing), first)
                for kind in (self.scores | later.scores)
            }
        )

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        lines = [f"{kind:<{width}} {one}" for kind, one in self.items()]
        if self.first_mismatch is not None:
            lines.append(f"first mismatch: {self.first_mismatch}")
        return "\n".join(lines)

    def _of(self, kind: str) -> MachineScore:
        if kind not in self:
            raise ModelError(f"no {kind} machine was scored: there is {', '.join(self)}")
        return self[kind]


def score(machines: Mapping[str, Machine], timing: LabelTiming, traces: TraceSet) -> Score:
    """Replay traces through machines.

    An unseen label makes every later step of its trace unseen, unless the answer
    to the question does not depend on the state.
    """
    asked = questions_of(machines, timing, traces)
    return Score({kind: _score(asked[kind], traces) for kind in machines})


@dataclass(frozen=True, slots=True, eq=False)
class StepsAsked:
    """What one machine is asked at every step of some traces, in its own codes.

    `labels` are read before the step (−1 for none, anything at or above their
    number for one the machine does not know), `states` are −1 where not known,
    `questions` −1 where it never met the observation or action, and `outputs`,
    what the traces answer, the number of its outputs where it knows no such one.
    """

    machine: Machine
    labels: Codes
    states: Codes
    questions: NDArray[np.int64]
    outputs: Codes


def steps_asked(
    transition: TransitionMachine, reward: RewardMachine, timing: LabelTiming, traces: TraceSet
) -> tuple[StepsAsked, StepsAsked]:
    """Say what both machines are asked at every step, and what the traces answer."""
    asked = questions_of({"transition": transition, "reward": reward}, timing, traces)
    return asked["transition"], asked["reward"]


def questions_of(
    machines: Mapping[str, Machine], timing: LabelTiming, traces: TraceSet
) -> dict[str, StepsAsked]:
    """Say what each machine is asked at every step, and what the traces answer."""
    histories = Histories.of(traces, timing)
    states = {kind: states_at_steps(one, histories) for kind, one in machines.items()}
    observed = traces.at_step(traces.observation_codes)
    found = {}
    for kind, machine in machines.items():
        if machine.supplemented:
            paired = machines["transition"].states
            seen = _paired(machine, traces, states["transition"], paired)
        else:
            seen = codes_of(traces.observations, machine.observations, -1)[observed]
        found[kind] = _asked(machine, traces, histories, states[kind], seen)
    return found


def _column(machine: Machine, traces: TraceSet) -> tuple[Sequence[Any], Codes]:
    """Return the values of the column that a machine predicts, and each step's code of its own."""
    match machine.predicts:
        case "observation":
            return list(traces.observations), traces.after_step(traces.observation_codes)
        case "reward":
            return rounded_rewards(traces.rewards, machine.digits), traces.reward_codes
        case "terminated":
            ended = np.zeros(traces.steps, np.int32)
            ended[traces.offsets[1:] - 1] = traces.terminated
            return [False, True], ended
        case other:
            raise ModelError(f"the traces have no column {other!r}, which a machine predicts")


def _asked(
    machine: Machine,
    traces: TraceSet,
    histories: Histories,
    states: Codes,
    observed: Codes,
) -> StepsAsked:
    done = codes_of(traces.actions, machine.actions, -1)[traces.action_codes]
    questions = observed.astype(np.int64) * len(machine.actions) + done
    questions[(observed < 0) | (done < 0)] = -1
    values, codes = _column(machine, traces)
    outputs = codes_of(values, machine.outputs, len(machine.outputs))[codes]
    return StepsAsked(machine, labels_read_by(machine, histories), states, questions, outputs)


def states_at_steps(machine: Machine, histories: Histories) -> Codes:
    """Return the machine's state at every step of some traces; −1 where it is not known."""
    return machine.replay(labels_read_by(machine, histories), histories.offsets)


def labels_read_by(machine: Machine, histories: Histories) -> Codes:
    """Return the labels read at every step in the machine's codes, unknown ones above those."""
    if histories.labels == machine.labels:
        return histories.beta
    codes = codes_of(histories.labels, machine.labels, len(machine.labels))
    return np.append(codes, np.int32(-1))[histories.beta]


def _paired(machine: Machine, traces: TraceSet, transition_states: Codes, states: int) -> Codes:
    """Return for each step the machine's code of (observation, transition state)."""
    # One state more, for "not known": no observation is paired with that one.
    seen = traces.at_step(traces.observation_codes)
    count = len(traces.observations)
    kept, codes = distinct_pairs(seen, transition_states + np.int32(1), count, states + 1)
    pairs = (divmod(key, states + 1) for key in kept.tolist())
    named = ((traces.observations[code], state - 1) for code, state in pairs)
    return codes_of(named, machine.observations, -1)[codes]


def _score(asked: StepsAsked, traces: TraceSet) -> MachineScore:
    machine = asked.machine
    predicted = machine.answer_many(asked.states, asked.questions)
    levels = machine.knowledge_many(asked.states, asked.questions)
    known = levels != UNSEEN_CODE
    assumed = levels == ASSUMED_CODE
    wrong = known & (predicted != asked.outputs)
    right = known & ~wrong
    first = None
    if wrong.any():
        row = int(np.argmax(wrong))
        trace, step = traces.place(row)
        seen = int(traces.at_step(traces.observation_codes)[row])
        values, codes = _column(machine, traces)
        first = Mismatch(
            machine=machine.kind,
            trace=trace,
            step=step,
            observation=traces.observations[seen],
            action=traces.actions[int(traces.action_codes[row])],
            state=int(asked.states[row]),
            predicted=machine.outputs[int(predicted[row])],
            actual=values[int(codes[row])],
            assumed=bool(assumed[row]),
        )
    return MachineScore(
        right=_count(right & ~assumed),
        wrong=_count(wrong & ~assumed),
        assumed_right=_count(right & assumed),
        assumed_wrong=_count(wrong & assumed),
        unseen=_count(~known),
        first_mismatch=first,
    )


def _count(rows: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(rows))
