"""Machines + traces → the model they define: all reachable augmented states and their steps.

Which steps are known is defined in docs/decisions/planning.md. All others are unknown, never
guessed; experiments lead to them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.parallel import Listener, Threads, Workers
from resolvent._util.records import ByValue
from resolvent._util.text import amount
from resolvent.errors import ModelError
from resolvent.evaluation.experiments import Experiment
from resolvent.machines import Machine, Machines
from resolvent.machines.augmented_state import AugmentedState, augmented_state_text
from resolvent.machines.memory import BreadthFirstSearch
from resolvent.planning.outcomes import Outcomes, tabulate_outcomes
from resolvent.planning.step_table import (
    Flags,
    KnownSteps,
    LabelModel,
    TerminationModel,
    tabulate_steps,
)
from resolvent.planning.steps import StateSpace, StepPass, Steps, acting_machines, positions
from resolvent.preprocess.samples import rounded
from resolvent.replay.coded_shard import Alphabets
from resolvent.replay.corpus import Corpus, run_pass, scan_corpus
from resolvent.replay.counts import ReplayCounts
from resolvent.replay.replaying import MachineTables
from resolvent.replay.score import score_of
from resolvent.replay.steps import to_machine_codes
from resolvent.traces import Label, Symbol, TraceDataset, TraceSet, Vocabulary, symbol_text
from resolvent.traces.io.formats import as_traces
from resolvent.traces.schema import REWARD
from resolvent.traces.symbols import NO_EVENT
from resolvent.traces.vocabulary import Codes


@dataclass(frozen=True, eq=False)
class Model(ByValue):
    """The augmented states reachable from the starts of the traces, in breadth-first order.

    An augmented state is an observation (`observation`) and the states of the machines that
    matter for acting (`states`, by machine name). `next_state`, `reward`, `ends`, `known` and
    `sometimes_ends` have a row for each augmented state and a column for each action.
    `next_state` is −1 where the step ends the episode or is not known, `reward` is NaN where it
    is not known. A step that ended some episodes and not others (`sometimes_ends`) is not known.
    `label_read` is the label read after a step, `first_label` that read at each start, as codes of
    `labels`; −1 where none is read, or where it is random.

    If machines have random outputs, or do not determine the labels, `outcomes` are all those of
    each step. Then `next_state` is the likeliest next augmented state, −1 where an end is
    likelier; `reward` is the mean reward; a step `ends` if it always did, and one that sometimes
    does is known like any other. `steps` is the number of steps of the traces.
    """

    observations: Vocabulary[Symbol]
    actions: Vocabulary[Symbol]
    observation: Codes
    states: dict[str, Codes]
    next_state: Codes
    reward: NDArray[np.float64]
    ends: Flags
    known: Flags
    sometimes_ends: Flags
    starts: Codes
    start_counts: NDArray[np.int64]
    reward_range: tuple[float, float]
    labels: Vocabulary[Label]
    label_read: Codes
    first_label: Codes
    outcomes: Outcomes | None = None
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
        >>> len(model), model.unknown_steps, model.find("cyanroom", 1, 1)
        (9, 0, 4)
        """
        traces = as_traces(traces)
        _check_usable(machines, traces)
        acting = acting_machines(machines)
        corpus = scan_corpus(
            acting.replacing(preprocessor=machines.preprocessor),
            traces,
            workers or Threads(),
            known=known,
            progress=progress,
        )
        alphabets, digits = corpus.alphabets, acting.reward.digits
        _check_same_world(acting, alphabets)
        space = StateSpace.of(acting, alphabets)
        recorded = traces.reward_codes if isinstance(traces, TraceSet) else None
        step_pass = StepPass(MachineTables.of(acting, alphabets), True, recorded)
        counts = run_pass(corpus, step_pass, progress)
        is_random = any(machine.is_noisy for machine in acting.values())
        if not is_random:
            acting = _checked(acting, replace(counts.replay, alphabets=alphabets), trust_constants)
        steps = Steps.of(counts, alphabets, space)
        starts, start_counts, first_label = steps.initial_states(space)
        transitions = [
            machine.transitions_for(steps.labels, others=True) for machine in acting.values()
        ]
        labels = LabelModel.of(steps, acting.timing, space, transitions)
        predictors = labels, TerminationModel.of(machines, steps, space)
        known_steps = KnownSteps(acting, steps, space, transitions, *predictors, trust_constants)
        if is_random or labels is None:
            # Noisy rewards are averaged as recorded; those in files by level, since files may
            # have as many distinct rewards as steps.
            values = traces.rewards if isinstance(traces, TraceSet) else alphabets.values[REWARD]
            rewards = rounded(values, digits)
            numbers, table, outcomes = tabulate_outcomes(starts, known_steps, np.array(rewards))
        else:
            rewards = rounded(alphabets.values[REWARD], digits)
            numbers, table, outcomes = *tabulate_steps(starts, known_steps), None
        observation, states = space.parts(numbers)
        seen_rewards = *acting.reward.outputs, *rewards
        return cls(
            space.observations,
            space.actions,
            observation,
            dict(zip(acting, states, strict=True)),
            **vars(table),
            starts=positions(starts, numbers),
            start_counts=start_counts,
            reward_range=(min(seen_rewards), max(seen_rewards)),
            labels=alphabets.labels,
            first_label=first_label
            if acting.timing.reads_at_reset
            else np.full_like(first_label, -1),
            outcomes=outcomes,
            steps=counts.replay.steps,
        )

    def __len__(self) -> int:
        return len(self.observation)

    def __repr__(self) -> str:
        return (
            f"Model({amount(len(self), 'augmented state')}, {amount(len(self.actions), 'action')}, "
            f"{self.unknown_steps:,} of {self.known.size:,} steps unknown)"
        )

    @property
    def traces(self) -> int:
        """The number of traces that the model was built from."""
        return int(self.start_counts.sum())

    def mean_at_starts(self, values: NDArray[np.float64]) -> float:
        """Return the mean of the values of augmented states over the starts of the traces."""
        return float(np.average(values[self.starts], weights=self.start_counts))

    @property
    def unknown_steps(self) -> int:
        """The number of steps, pairs of augmented state and action, that are not known."""
        return int(np.count_nonzero(~self.known))

    def find(self, observation: Symbol, *states: int) -> int | None:
        """Return the number of an augmented state, or None if the model does not have it."""
        return self._numbers.get((observation, *states))

    def augmented_state(self, number: int) -> AugmentedState:
        """Return the observation and the states of an augmented state, given its number."""
        states = (int(column[number]) for column in self.states.values())
        return (self.observations[int(self.observation[number])], *states)

    def text(self, number: int) -> str:
        """Return an augmented state as text, given its number."""
        return augmented_state_text(self.augmented_state(number))

    @cached_property
    def _numbers(self) -> dict[AugmentedState, int]:
        return {self.augmented_state(number): number for number in range(len(self))}


def _check_usable(machines: Machines, traces: TraceSet | TraceDataset) -> None:
    if isinstance(traces, TraceSet) and not len(traces):
        raise ModelError("there are no traces: a model needs at least one")
    intervals = machines.preprocessor.discretize
    if intervals is not None and intervals.of == "action":
        raise ModelError(
            "the machines read intervals of actions, and a plan cannot choose a number in them: "
            "use discrete actions"
        )


def _check_same_world(machines: Machines, alphabets: Alphabets) -> None:
    """Refuse traces if the machines know none of their observations."""
    observations, learned = alphabets.observations, machines.transition.observations
    if not any(symbol in learned for symbol in observations):
        raise ModelError(
            f"the machines know no observation of the traces, such as "
            f"{symbol_text(observations[0])} (they know {symbol_text(learned[0])}): these "
            f"traces are from another environment"
        )


def _checked(machines: Machines, replay: ReplayCounts, trust_constants: bool) -> Machines:
    """Return deterministic machines as they are used, if they predict all traces.

    Unless they are trusted, constant outputs are observed only where these traces query them.
    """
    mismatch = score_of(machines, replay).first_mismatch
    if mismatch is None:
        if trust_constants:
            return machines
        return machines.replacing(*(_as_queried(machine, replay) for machine in machines.values()))
    if machines.state_uncertainty:
        raise ModelError(
            f"{mismatch}; labels do not determine the states ({machines.state_uncertainty}), and a "
            f"plan relies on labels: use q_learning with AugmentObservation(mode='belief')"
        )
    raise ModelError(
        f"{mismatch}: the environment is not deterministic under these labels, these are not its "
        f"machines, or the trace is an outlier to exclude"
    )


def _as_queried(machine: Machine, replay: ReplayCounts) -> Machine:
    rows = replay.machines[machine.name].known_outputs
    query, _ = to_machine_codes(machine, rows, replay.alphabets, replay.sizes["transition"])
    return machine.with_observed(np.ascontiguousarray(rows["state"]), query)


# --- Experiments ---------------------------------------------------------------------------------

ModelStep: TypeAlias = tuple[int, int]  # the numbers of an augmented state and of an action


def first_unknown_step(policy: Codes, model: Model, starts: Iterable[int]) -> Experiment | None:
    """Return the experiment that a policy reaches soonest from any of some starts.

    In a stochastic model, the step taken least often comes first. A step that ends episodes only
    sometimes does not count, since trying it again would not settle it.
    """
    experiments = [_unknown_step_from(policy, model, int(start)) for start in starts]
    return min(
        (experiment for experiment in experiments if experiment is not None),
        key=lambda experiment: (experiment.taken or 0, len(experiment.actions or ())),
        default=None,
    )


def _unknown_step_from(policy: Codes, model: Model, start: int) -> Experiment | None:
    """Return the first unknown step that a policy takes; None if it only takes known ones.

    In a stochastic model, the likeliest path is followed; if all its steps are known, the step
    taken least often is returned.
    """
    state, path, visited = start, list[ModelStep](), set[int]()
    while state >= 0 and state not in visited:
        visited.add(state)
        path.append((state, int(policy[state])))
        if not model.known[path[-1]]:
            break
        state = int(model.next_state[path[-1]])
    if model.outcomes is not None:
        numbers = [state * len(model.actions) + action for state, action in path]
        counts = model.outcomes.count[numbers].tolist()
        rarest = counts.index(min(counts))
        return _experiment(model, path[:rarest], path[rarest], counts[rarest])
    if model.known[path[-1]] or model.sometimes_ends[path[-1]]:
        return None
    return _experiment(model, path[:-1], path[-1])


def nearest_unknown_step(model: Model) -> Experiment | None:
    """Return the unknown step nearest to any start; None if there is none."""
    search: BreadthFirstSearch[int, int] = BreadthFirstSearch(model.starts.tolist())
    for state in search:
        untried = ~model.known[state] & ~model.sometimes_ends[state]
        if untried.any():
            last = state, int(untried.argmax())
            taken = None if model.outcomes is None else 0
            return _experiment(model, search.path_to(state), last, taken)
        for action, after in enumerate(model.next_state[state].tolist()):
            if after >= 0:
                search.add(after, state, action)
    return None


def _experiment(
    model: Model, path: Sequence[ModelStep], last: ModelStep, taken: int | None = None
) -> Experiment:
    """Return the experiment that follows a path, then takes a last step."""
    start = path[0][0] if path else last[0]
    codes = [
        *model.first_label[model.starts == start].tolist(),
        *(int(model.label_read[step]) for step in path),
    ]
    labels = (model.labels[code] for code in codes if code >= 0)
    augmented_state = model.augmented_state(last[0])
    why = f"it was observed {amount(taken, 'time')}, the fewest on this path" if taken else ""
    return Experiment(
        tuple(label for label in labels if label != NO_EVENT),
        (augmented_state[0], model.actions[last[1]]),
        why or "its outcome is unknown",
        start=model.augmented_state(start),
        actions=tuple(model.actions[code] for _, code in path),
        augmented_state=augmented_state,
        taken=taken,
    )
