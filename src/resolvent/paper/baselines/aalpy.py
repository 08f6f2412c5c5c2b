"""AALpy's general state merging, a peer: traces → both machines, from the same samples as ours."""

import importlib
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from resolvent._util.validation import check_arguments
from resolvent.errors import MissingExtra, OptionError, TimeLimitReached
from resolvent.inference.conflict import Sampling, explain_conflict
from resolvent.machines import Machine, MachinePair, RewardMachine, TransitionMachine, machines_of
from resolvent.machines.build import Vocabularies, machine_of_tables
from resolvent.paper.baselines.outcome import Clock, Outcome, check_not_empty
from resolvent.preprocess.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.preprocess.samples import (
    Histories,
    SampleSet,
    find_contradiction,
    output_samples,
    supplement,
)
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.replaying import states_at_steps
from resolvent.traces.trace_set import TraceSet

M = TypeVar("M", bound=Machine)


def aalpy(
    traces: TraceSet,
    *,
    order: Literal["first-fit", "edsm"] = "first-fit",
    timing: LabelTiming | str = LabelTiming.CURRENT,
    time_limit: float | None = None,
) -> Outcome:
    """Infer both machines by AALpy's state merging, from the same samples as ours.

    As in `infer`, queries with a constant output and the label "no event" are removed first,
    and observations are supplemented with Transition Machine states.

    Args:
        traces: The traces.
        order: "first-fit" takes blue states in shortlex order and the first red one that
            fits, as `infer` with "rpni" does. "edsm" takes the pair with the most
            agreeing outputs; AALpy breaks ties.
        timing: The labels that are read before the output of a step.
        time_limit: Seconds for everything. After them the status is "time limit", and
            there is no machine.

    Returns:
        An outcome with a `MachinePair`, whose details hold for each machine its states,
        nodes of the prefix tree, and seconds.

    Raises:
        MissingExtra: when AALpy is not installed.
        ContradictoryTraces: when no deterministic machine can explain the traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.machines import is_isomorphic
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
    >>> options = rs.InferenceOptions(strategy="rpni", trivial=[])
    >>> pair, ours = aalpy(traces).machine, rs.infer(traces, options=options).machines
    >>> is_isomorphic(pair.transition, ours.transition), is_isomorphic(pair.reward, ours.reward)
    (True, True)
    """
    check_arguments(aalpy, locals())
    if timing not in tuple(LabelTiming):
        raise OptionError(f"unknown timing '{timing}': choose one of {', '.join(LabelTiming)}")
    check_not_empty(traces)
    run = _Run(traces, LabelTiming(timing), order == "edsm", Clock(time_limit))
    pair = None
    with suppress(TimeLimitReached):
        pair = run.pair()
    return Outcome(
        method="aalpy",
        status="time limit" if pair is None else "found",
        seconds=run.clock.seconds,
        machine=pair,
        details={"order": order, "timing": str(timing), **run.details},
    )


class _Run:
    """One inference in progress."""

    def __init__(self, traces: TraceSet, timing: LabelTiming, edsm: bool, clock: Clock) -> None:
        self.merging = import_merging()
        self.traces, self.timing, self.edsm, self.clock = traces, timing, edsm, clock
        self.trivial = trivial_codes(traces.labels)
        self.histories = remove_trivial(Histories.of(traces, timing), self.trivial)
        self.details: dict[str, Any] = {}

    def pair(self) -> MachinePair:
        """Infer the Transition Machine, and with its states the Reward Machine."""
        traces, histories = self.traces, self.histories
        samples = output_samples(traces, histories, "observation")
        transition = self._machine(TransitionMachine, samples)
        states = states_at_steps(machines_of([transition], self.timing), traces)["transition"]
        observed = supplement(traces, states)
        samples = output_samples(traces, histories, "reward", observed=observed)
        reward = self._machine(RewardMachine, samples, supplemented=True)
        return MachinePair(transition, reward, self.timing)

    def _machine(self, kind: type[M], samples: SampleSet, **settings: Any) -> M:
        started = self.clock.seconds
        reduced, constants = remove_redundant(samples)
        if rows := find_contradiction(reduced):
            build = partial(output_samples, predicts=kind.predicts)
            sampling = Sampling(self.traces, build, kind.predicts, self.timing, self.trivial)
            raise explain_conflict(rows, sampling).error()
        self.clock.check()
        table, (state, alpha, output), nodes = self.merging.merge(
            reduced, edsm=self.edsm, check_time=self.clock.check
        )
        # An output in one state counts for all states; the state of a constant one is unknown.
        answers = (
            np.append(state, np.zeros(len(constants.alpha), np.int64)),
            samples.alpha_keys[np.append(alpha, constants.alpha)],
            np.append(output, constants.output),
        )
        machine, _ = machine_of_tables(
            kind,
            Vocabularies(samples.labels, samples.observations, samples.actions, samples.outputs),
            table,
            answers,
            trivial=self.trivial,
            **settings,
        )
        machine = replace(
            machine,
            observed_constant_state=machine.observed_constant_state[:0],
            observed_constant_query=machine.observed_constant_query[:0],
        )
        self.details[machine.name] = {
            "states": machine.states,
            "nodes": nodes,
            "seconds": self.clock.seconds - started,
        }
        return machine


def import_merging() -> Any:
    """Import the module that needs AALpy, or name the missing extra."""
    try:
        return importlib.import_module("resolvent.paper.baselines.aalpy_merging")
    except ImportError as error:
        raise MissingExtra('the peer AALpy is missing: pip install "resolvent[aalpy]"') from error
