"""AALpy: traces → both machines, found by the state-merging library a user would pick.

Muškardin et al., "AALpy: an active automata learning library" (2022), from version 2.0
on with general state merging.
"""

import importlib
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from resolvent.baselines.clock import Clock
from resolvent.baselines.outcome import Outcome
from resolvent.contradiction import explain
from resolvent.errors import MissingExtra, OptionError, TimeLimitReached, TraceError
from resolvent.machines import Machine, MachinePair, RewardMachine, TransitionMachine, machines_of
from resolvent.machines.building import machine_of_tables
from resolvent.merging import find_contradiction
from resolvent.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.replay import states_at_steps
from resolvent.samples import Histories, LabelTiming, SampleSet, output_samples
from resolvent.supplement import supplement
from resolvent.traces.trace_set import TraceSet

M = TypeVar("M", bound=Machine)

ORDERS = ("first-fit", "edsm")


def aalpy(
    traces: TraceSet,
    *,
    order: Literal["first-fit", "edsm"] = "first-fit",
    timing: LabelTiming | str = LabelTiming.CURRENT,
    time_limit: float | None = None,
) -> Outcome:
    """Find both machines by AALpy's state merging, from the same samples that ours gets.

    Before it, questions with one answer throughout and the label "no event" are taken out as
    `infer` does; between the machines, observations are paired with states of the first.

    Args:
        traces: What the agent saw.
        order: "first-fit" takes blue states in shortlex order and the first red one that
            fits, as `infer` with "rpni" does. "edsm" takes of all pairs the one on which
            most answers agree; which of several is up to AALpy.
        timing: Which labels are read before a step is answered.
        time_limit: Seconds for everything; once they are over the status is "time
            limit", and there is no machine.

    Returns:
        An outcome with a `MachinePair`, whose details hold for each machine its states,
        nodes of the prefix tree, and seconds.

    Raises:
        MissingExtra: when AALpy is not installed.
        ContradictoryTraces: when no deterministic machine can explain the traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> from resolvent.machines import is_isomorphic
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=100, seed=0)
    >>> pair, ours = aalpy(traces).machine, rs.infer(traces, strategy="rpni", trivial=[]).machines
    >>> is_isomorphic(pair.transition, ours.transition), is_isomorphic(pair.reward, ours.reward)
    (True, True)
    """
    if order not in ORDERS:
        raise OptionError(f"unknown order '{order}': choose one of {', '.join(ORDERS)}")
    if timing not in tuple(LabelTiming):
        raise OptionError(f"unknown timing '{timing}': choose one of {', '.join(LabelTiming)}")
    if not len(traces):
        raise TraceError("there are no traces to learn from: collect or read at least one")
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
    """One inference under way."""

    def __init__(self, traces: TraceSet, timing: LabelTiming, edsm: bool, clock: Clock) -> None:
        self.merging = _import_merging()
        self.traces, self.timing, self.edsm, self.clock = traces, timing, edsm, clock
        self.trivial = trivial_codes(traces.labels)
        self.histories = remove_trivial(Histories.of(traces, timing), self.trivial)
        self.details: dict[str, Any] = {}

    def pair(self) -> MachinePair:
        """Find the Transition Machine, and with its states the Reward Machine."""
        traces, histories = self.traces, self.histories
        transition = self._machine(
            TransitionMachine, output_samples(traces, histories, "observation")
        )
        alone = machines_of([transition], self.timing)
        states = states_at_steps(alone, traces)["transition"]
        observed = supplement(transition, traces, states)
        samples = output_samples(traces, histories, "reward", observed=observed)
        reward = self._machine(RewardMachine, samples, supplemented=True)
        return MachinePair(transition, reward, self.timing)

    def _machine(self, kind: type[M], samples: SampleSet, **more: Any) -> M:
        started = self.clock.seconds
        reduced, constants = remove_redundant(samples)
        if rows := find_contradiction(reduced):
            asking = partial(output_samples, predicts=kind.predicts)
            raise explain(rows, self.traces, asking, kind.kind, self.timing, self.trivial)
        self.clock.look()
        tick = None if self.clock.left is None else self.clock.look
        table, (state, alpha, output), nodes = self.merging.merged(
            reduced, edsm=self.edsm, tick=tick
        )
        # One answer in one state is an answer for all of them; which asked for it is not known.
        answers = (
            np.append(state, np.zeros(len(constants.alpha), np.int64)),
            samples.alpha_keys[np.append(alpha, constants.alpha)],
            np.append(output, constants.output),
        )
        machine, _ = machine_of_tables(
            kind,
            labels=samples.labels,
            observations=samples.observations,
            actions=samples.actions,
            outputs=samples.outputs,
            transitions=table,
            initial=0,
            answers=answers,
            trivial=self.trivial,
            **more,
        )
        machine = replace(
            machine,
            asked_state=machine.asked_state[:0],
            asked_question=machine.asked_question[:0],
        )
        self.details[kind.kind] = {
            "states": machine.states,
            "nodes": nodes,
            "seconds": self.clock.seconds - started,
        }
        return machine


def _import_merging() -> Any:
    """Import what needs AALpy, or say which extra is missing."""
    try:
        return importlib.import_module("resolvent.baselines.aalpy_merging")
    except ImportError as error:
        raise MissingExtra('the peer AALpy is missing: pip install "resolvent[aalpy]"') from error
