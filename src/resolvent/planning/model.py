"""Machines + traces → the model they define: all reachable augmented states and their steps.

An augmented state is an observation with the states of the machines that matter for acting. A
step from it is known if the machines predict the next observation and the reward, the traces
show the label read then, a machine or the traces show whether the episode ends, and all machines
have a transition for that label. All other steps are unknown, never guessed.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from resolvent._util.parallel import Threads, Workers
from resolvent._util.progress import Listener
from resolvent._util.records import ByValue
from resolvent._util.text import amount
from resolvent.errors import ModelError
from resolvent.machines import Machine, Machines
from resolvent.machines.situations import AugmentedState
from resolvent.planning.label_model import LabelModel, StochasticLabels, TerminationModel
from resolvent.planning.steps import (
    StateSpace,
    StepPass,
    Steps,
    acting_machines,
    place_of,
    start_states,
)
from resolvent.planning.stochastic_model import OutcomePredictor, Outcomes, tabulate_outcomes
from resolvent.planning.transitions import Flags, StepPredictor, StepTable, reachable
from resolvent.preprocess.samples import rounded
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import Corpus
from resolvent.replay.counts import ReplayCounts
from resolvent.replay.passes import run_pass, scan_corpus
from resolvent.replay.replaying import MachineTables, to_machine_codes
from resolvent.replay.score import score_of
from resolvent.traces import Label, Symbol, TraceDataset, TraceSet, Vocabulary, symbol_text
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import REWARD, TERMINATED
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, eq=False)
class Model(ByValue):
    """The augmented states reachable from the starts of the traces, in breadth-first order.

    An augmented state is an observation (`observation`) and the states of the machines that
    matter for acting (`states`, by machine name). `following`, `reward`, `ends`, `known` and
    `sometimes_ends` have a row for each augmented state and a column for each action.
    `following` is −1 where the step ends the episode or is not known, `reward` is NaN where it
    is not known. A step that ended some episodes and not others (`sometimes_ends`) is not known.
    `read` is the label read after a step, `read_first` the label read at each start, as codes of
    `labels`; −1 where none is read, or where it is random.

    If machines have random outputs, or do not determine the labels, `chances` hold all outcomes
    of each step. Then `following` is the likeliest next augmented state, −1 where an end is
    likelier; `reward` is the mean reward; a step `ends` if it always did, and one that sometimes
    does is known like any other. `steps` is the number of steps of the traces.
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
    chances: Outcomes | None = None
    steps: int = 0

    @classmethod
    def of(
        cls,
        machines: Machines,
        traces: TraceSet | TraceDataset,
        *,
        trust_constants: bool = False,
        known: Corpus | None = None,
        workers: Workers | None = None,
        progress: Listener | None = None,
    ) -> "Model":
        """Build the model of the environment that the traces come from.

        The machines may have been inferred from other traces of that environment. The traces
        show where episodes begin and end, and which labels follow. A machine's constant outputs
        count only in states where these traces query them, unless `trust_constants`. Files are
        read twice by `workers` (threads by default), or once if `known` is their corpus.

        >>> from resolvent.worlds import House
        >>> from resolvent.inference.infer import infer
        >>> from resolvent.rl.collect import collect
        >>> traces = collect(House(), episodes=200, seed=0)
        >>> model = Model.of(infer(traces).machines, traces)
        >>> len(model), model.unknown, model.situation("cyanroom", 1, 1)
        (9, 0, 4)
        """
        traces = as_traces(traces)
        if isinstance(traces, TraceSet) and not len(traces):
            raise ModelError(
                "there are no traces: a model needs some, to know where episodes begin"
            )
        intervals = machines.senses.discretise
        if intervals is not None and intervals.of == "action":
            raise ModelError(
                "the machines know of actions only in which interval their numbers lie, so that "
                "no plan can say what to do: give actions that are symbols"
            )
        acting = acting_machines(machines)
        corpus = scan_corpus(
            acting.replacing(senses=machines.senses),
            traces,
            workers or Threads(),
            known=known,
            progress=progress,
        )
        _check_same_world(acting, corpus.alphabets)
        is_random = any(machine.is_noisy for machine in acting.values())
        space, tables = (
            StateSpace.of(acting, corpus.alphabets),
            MachineTables.of(acting, corpus.alphabets),
        )
        while True:
            rewards, paid = _rewards(acting, traces, corpus.alphabets, is_random)
            step_counts = run_pass(corpus, StepPass(tables, is_random, paid), progress)
            replay = replace(step_counts.shown, alphabets=corpus.alphabets)
            steps = Steps.of(step_counts, corpus.alphabets, space)
            if is_random:
                break
            _check_predictions(acting, replay)
            try:
                labels = LabelModel.of(steps, acting.timing, space, steps.transitions(acting))
                break
            except StochasticLabels:  # count the steps again, by reward
                is_random = True
        starts, counts, first = start_states(steps, space)
        if is_random:
            ending = TerminationModel.of(machines, steps, space)
            outcomes = OutcomePredictor(
                acting, steps, rewards[steps.paid], space, ending, trust_constants
            )
            situations, table, chances = tabulate_outcomes(starts, outcomes)
        else:
            if not trust_constants:
                queried = (_as_queried(machine, replay) for machine in acting.values())
                acting = acting.replacing(*queried)
            by_traces = None
            if TERMINATED not in acting:
                by_traces = TerminationModel.of(machines, steps, space)
            predictor = StepPredictor(acting, steps, space, labels, by_traces, trust_constants)
            situations, tables_of_layers = reachable(starts, predictor, space)
            table, chances = StepTable.concatenate(tables_of_layers), None
        observation, states = space.parts(situations)
        distinct_rewards = {*acting.reward.outputs, *rewards.tolist()}
        return cls(
            space.observations,
            space.actions,
            observation,
            dict(zip(acting, states, strict=True)),
            following=place_of(table.following, situations),
            reward=table.reward,
            ends=table.ends,
            known=table.known,
            sometimes_ends=table.sometimes_ends,
            starts=place_of(starts, situations),
            start_counts=counts,
            reward_range=(min(distinct_rewards), max(distinct_rewards)),
            labels=corpus.alphabets.labels,
            read=table.read,
            read_first=first if acting.timing.reads_at_reset else np.full_like(first, -1),
            chances=chances,
            steps=replay.steps,
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
        """The number of traces that the model was built from."""
        return int(self.start_counts.sum())

    def at_starts(self, values: NDArray[np.float64]) -> float:
        """Return the mean of the values of augmented states over the starts of the traces."""
        return float(np.average(values[self.starts], weights=self.start_counts))

    @property
    def unknown(self) -> int:
        """The number of steps, pairs of augmented state and action, that are not known."""
        return int(np.count_nonzero(~self.known))

    @property
    def transition_state(self) -> Codes:
        """The state of the Transition Machine in every augmented state."""
        return self.states["transition"]

    @property
    def reward_state(self) -> Codes:
        """The state of the Reward Machine in every augmented state."""
        return self.states["reward"]

    def situation(self, observation: Symbol, *states: int) -> int | None:
        """Return the number of an augmented state, or None if the model does not have it."""
        return self._numbers.get((observation, *states))

    def named(self, situation: int) -> AugmentedState:
        """Return the observation and the states of an augmented state."""
        states = (int(column[situation]) for column in self.states.values())
        return (self.observations[int(self.observation[situation])], *states)

    @cached_property
    def _numbers(self) -> dict[AugmentedState, int]:
        return {self.named(number): number for number in range(len(self))}


def _as_queried(machine: Machine, counts: ReplayCounts) -> Machine:
    """Return a machine whose constant outputs are witnessed only where these traces query them."""
    rows = counts.machines[machine.kind].known
    coded = to_machine_codes(machine, rows, counts.alphabets, counts.sizes["transition"])
    unwitnessed = replace(
        machine, asked_state=np.empty(0, np.int32), asked_question=np.empty(0, np.int64)
    )
    return unwitnessed.witnessing(np.ascontiguousarray(rows["state"]), coded.question)


def _check_predictions(machines: Machines, counts: ReplayCounts) -> None:
    mismatch = score_of(machines, counts).first_mismatch
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


def _rewards(
    machines: Machines, traces: TraceSet | TraceDataset, alphabets: Alphabets, noisy: bool
) -> tuple[NDArray[np.float64], Codes | None]:
    """Return all rewards, and for noisy traces in memory also their codes by step.

    Noisy rewards are averaged as recorded. Those of files are averaged by level, since files may
    have as many distinct rewards as steps.
    """
    digits = machines.reward.reward_digits
    if noisy and isinstance(traces, TraceSet):
        return np.array(rounded(traces.rewards, digits)), traces.reward_codes
    return np.array(rounded(alphabets.columns[REWARD], digits)), None


def _check_same_world(machines: Machines, alphabets: Alphabets) -> None:
    """Refuse traces if the machines know none of their observations."""
    observations, learned = alphabets.observations, machines.transition.observations
    if not any(symbol in learned for symbol in observations):
        raise ModelError(
            f"the machines know no observation of the traces, such as "
            f"{symbol_text(observations[0])} (they know {symbol_text(learned[0])}): these are "
            f"traces of another world"
        )
