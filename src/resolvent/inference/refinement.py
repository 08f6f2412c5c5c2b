"""Counterexample-guided refinement: learn from some traces, replay all, add those that fail.

Input: a corpus. Output: an `InferenceResult` whose machines explain all traces, or the `Conflict`
that no machines without noise explain.
"""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log2
from resolvent.evaluation.diagnosis.inference_warnings import warnings_of
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import NO_SECONDS_LEFT, InferenceContext, outputs_of
from resolvent.inference.counterexamples import (
    counterexamples,
    merge_equal_states,
    observed_termination,
    traces_with_rare_transitions,
    with_evidence,
)
from resolvent.inference.exact.certificate import MinimalityProof
from resolvent.inference.fit import Fit, InferenceState, Refinement
from resolvent.inference.learning_task import MachineFit, fits_of, found_of
from resolvent.inference.machine_fitter import MachineFitter
from resolvent.inference.result import InferenceResult
from resolvent.inference.summary import time_ran_out_warning
from resolvent.machines import Machine, Machines, Provenance, machines_of
from resolvent.machines.automaton import StateLimitExceeded
from resolvent.preprocess.reduction import trivial_codes
from resolvent.preprocess.samples import Histories
from resolvent.replay import Corpus, ReplayCounts, replay, states_at_steps
from resolvent.replay.replaying import REPLAYING
from resolvent.traces import Label
from resolvent.traces.schema import TERMINATED
from resolvent.traces.source import InMemorySource

REFINE_ABOVE_STEPS = 500_000
"""Number of steps above which inference refines by default."""

SAMPLE_STEPS = 50_000
"""Number of steps that the first round learns from."""

NOISY_STEPS = 1_000_000
"""Number of steps of files that machines with noise are learned from."""

STEPS_PER_MOVE = 50
"""Number of steps that a sample should have, on average, for each label read in each state."""

FEW_STATES = 32
"""Number of states up to which machines are learned from few steps, whatever the number of labels:
most labels may be rare."""

MORE_STEPS = 4
"""Factor by which a sample grows if it was too small."""

FIRST_COUNTEREXAMPLES = 16
"""Half of the counterexamples that the first round adds; each later one adds twice as many."""

RARE_TIMES = 4
"""Half of the traces with each transition that the first round adds, if there are that many; each
later one adds twice as many."""

WORTH_A_THREAD = 20_000
"""Number of steps from which a digest of traces is computed beside learning: a thread takes longer
to start than the digest of fewer."""

Numbers: TypeAlias = NDArray[np.int64]


def refine(context: InferenceContext, corpus: Corpus) -> InferenceResult | Conflict:
    """Infer machines without noise from a corpus."""
    options = context.options
    refines = corpus.steps > REFINE_ABOVE_STEPS and options.strategy.refines
    if options.refine is not None or not corpus.in_memory:
        refines = options.refine is not False
    with ThreadPoolExecutor(1) as beside:  # learning leaves a core idle
        if corpus.in_memory and corpus.steps > WORTH_A_THREAD:
            beside.submit(lambda: corpus.digest)
        loop = RefinementLoop(context, corpus, outputs_of(options, corpus.alphabets))
        chosen = corpus.sample(SAMPLE_STEPS) if refines else corpus.all
        return loop.learn_enough(chosen) or loop.run()


def fit_noisy(
    context: InferenceContext, corpus: Corpus, noisy: Collection[str]
) -> InferenceResult | Conflict:
    """Infer the most likely machines for noisy outputs, and exact ones for the others.

    A conflict is one in those others.
    """
    outputs = outputs_of(context.options, corpus.alphabets)
    loop = RefinementLoop(context, corpus, outputs, frozenset(noisy))
    chosen = corpus.all if corpus.in_memory else corpus.sample(NOISY_STEPS)
    return loop.learn(chosen) or loop.result(loop.replay(), noisy=True)


def refine_further(
    context: InferenceContext, before: InferenceState, corpus: Corpus
) -> InferenceResult | Conflict:
    """Continue an inference without noise on a corpus with more traces."""
    options = context.options
    outputs = [machine.predicts for machine in before.found.machines.values()]
    if before.found.unfinished:
        return refine(context, corpus)
    if options.outputs is None:
        wanted = outputs_of(options, corpus.alphabets)
        if wanted != [name for name in outputs if name != TERMINATED or name in wanted]:
            return refine(context, corpus)  # more traces may have more to predict
    loop = RefinementLoop(context, corpus, outputs)
    loop.resume(before)
    counts = None  # earlier counts can be added to, unless codes have changed
    if corpus.alphabets is before.corpus.alphabets:
        counts = before.shown + loop.replay(since=len(corpus.shards) - 1)
    return loop.run(counts)


class RefinementLoop:
    """The state of one refinement: the traces learned from, and the machines so far."""

    chosen: Numbers
    found: Fit

    def __init__(
        self,
        context: InferenceContext,
        corpus: Corpus,
        outputs: list[str],
        noisy: frozenset[str] = frozenset(),
    ) -> None:
        self.context = context
        self.corpus = corpus
        self.outputs = outputs
        self.named_trivial = _named_trivial(context, corpus)
        self.fitter = MachineFitter(context, corpus, self.named_trivial, noisy)
        self.fits: dict[str, MachineFit] = {}
        self.tried_ending = 0
        self.rounds = 1
        self.replay_seconds = 0.0

    def resume(self, before: InferenceState) -> None:
        """Continue from the machines of an earlier inference."""
        self.chosen, self.found = before.chosen, before.found
        self.fits = fits_of(before.found)
        self.tried_ending = before.found.tried_ending

    def run(self, counts: ReplayCounts | None = None) -> InferenceResult | Conflict:
        """Replay and learn in turn until the machines explain every trace."""
        while True:
            if counts is None:
                counts = self.replay()
            if self.found.unfinished:  # there is no time to learn from more traces
                break
            if (
                self.context.time_left() == NO_SECONDS_LEFT
            ):  # the machines so far are the best there are
                self.found = replace(self.found, unfinished=counts.unexplained)
                break
            if self.corpus.in_memory and not counts.consistent:
                # The shortest traces that show a conflict matter only if there is one.
                counts = self.replay(shortest=True)
            more = counterexamples(counts, self.chosen, FIRST_COUNTEREXAMPLES << self.rounds)
            if len(more):
                if (conflict := self._learn_from_more(more)) is not None:
                    return conflict
            elif smaller := self._compacted(counts):
                if (conflict := self._use_smaller(smaller)) is not None:
                    return conflict
            elif self._may_try_ending() and _open_bits(counts):
                self._try_ending()
            else:
                break
            counts = None
        if not counts.consistent and not self.found.unfinished:
            raise AssertionError("the machines do not explain what they were learned from")
        result = self.result(counts)
        if self.found.unfinished:
            result = replace(result, warnings=(time_ran_out_warning(result), *result.warnings))
        return result

    def learn(
        self,
        chosen: Numbers,
        reused: Mapping[str, MachineFit] | None = None,
        *,
        most_states: int | None = None,
    ) -> Conflict | None:
        """Learn machines from some traces; return a conflict if there are none.

        Unless machines are reused, one for the ends of episodes that nobody asked for is dropped:
        the new ones may predict them without it.
        """
        options = self.context.options
        if reused is None and options.outputs is None:
            self.outputs = [name for name in self.outputs if name != TERMINATED]
        traces = self.corpus.fetch(chosen)
        fits = self.fitter.fit(
            traces, chosen, self.outputs, reused=reused, previous=self.fits, most_states=most_states
        )
        if isinstance(fits, Conflict):
            return fits
        self.chosen, self.fits = chosen, fits
        self.found = found_of(fits, options.timing, traces.steps, self.tried_ending)
        return None

    def learn_enough(self, chosen: Numbers) -> Conflict | None:
        """Learn from some traces, or from more if machines have too many states for so few.

        A few steps for each transition are so little evidence that merging finds far too many
        states, and takes long to do so.
        """
        steps_per_state = STEPS_PER_MOVE * len(self.corpus.alphabets.labels)
        fewer = -1
        while fewer < len(chosen) < self.corpus.traces:
            fewer = len(chosen)
            steps = self.corpus.fetch(chosen).steps
            try:
                return self.learn(chosen, most_states=max(FEW_STATES, steps // steps_per_state))
            except StateLimitExceeded:
                chosen = np.union1d(chosen, self.corpus.sample(MORE_STEPS * steps))
        return self.learn(chosen)

    def replay(self, *, since: int = 0, shortest: bool = False) -> ReplayCounts:
        """Replay all traces through the machines, and count what they show."""
        return self._replayed(self.corpus, since=since, shortest=shortest)

    def result(self, counts: ReplayCounts, *, noisy: bool = False) -> InferenceResult:
        """Return the result, with machines that know what all traces showed."""
        context, corpus, fit = self.context, self.corpus, self.found
        options = context.options
        refinement = Refinement(
            self.rounds, len(self.chosen), fit.steps, corpus.traces, noisy=noisy
        )
        provenance = Provenance(
            version=_version(),
            traces=corpus.traces,
            steps=corpus.steps,
            traces_sha256=corpus.digest,
            options=options.as_dict(),
        )
        machines = machines_of(
            with_evidence(
                fit.machines,
                counts,
                self.named_trivial or frozenset(),
                constants=options.remove_redundant,
            ),
            options.timing,
            observed_termination(counts),
            provenance,
            context.senses,
        )
        statistics = {
            kind: replace(
                fit.statistics[kind],
                states=machine.states,
                constant_outputs=len(machine.constant_value),
                outputs_by_state=len(machine.output_value),
            )
            for kind, machine in machines.items()
        }
        merged = options.strategy.merges and not fit.unfinished
        warnings = warnings_of(counts, corpus, merged=merged)
        seconds = {kind: own.seconds for kind, own in statistics.items()}
        total = time.perf_counter() - context.started
        return InferenceResult(
            machines=machines,
            options=options,
            traces=corpus.traces,
            steps=corpus.steps,
            statistics=statistics,
            refinement=refinement,
            seconds={**seconds, "replay": self.replay_seconds, "total": total},
            trivial=fit.verdicts,
            certificates=_certificates(fit, machines, refinement),
            standing=InferenceState(corpus, self.chosen, fit, counts),
            warnings=warnings,
        )

    def _learn_from_more(self, more: Numbers) -> Conflict | None:
        """Learn from counterexamples, and from more traces with rare transitions or of any kind."""
        rare = self.with_rare_transitions()
        sample = self.corpus.sample(SAMPLE_STEPS << (self.rounds - (len(rare) > 0)))
        chosen = np.unique(np.concatenate([self.chosen, more, rare, sample]))
        conflict = self.learn_enough(chosen)
        self.rounds += 1
        return conflict

    def with_rare_transitions(self) -> Numbers:
        """Return traces with transitions of the machines that few traces make.

        They have no more steps than the sample grows by otherwise. None for traces in files, which
        would have to be read once more.
        """
        if not self.corpus.in_memory:
            return np.empty(0, np.int64)
        traces = self.corpus.together()
        histories = Histories.of(traces, self.context.options.timing)
        states = states_at_steps(self.found.machines, traces)
        # A transition reads a label in the state of a step before, or initially in state 0.
        transitions = []
        for kind in self.found.machines:
            before = np.roll(states[kind], 1)
            before[traces.offsets[:-1]] = 0
            is_known = (before >= 0) & (histories.beta >= 0)
            transition = before.astype(np.int64) * len(traces.labels) + histories.beta
            transitions.append(np.where(is_known, transition, -1))
        steps = SAMPLE_STEPS << (self.rounds - 1)
        times = RARE_TIMES << self.rounds
        return traces_with_rare_transitions(
            transitions, traces.offsets, self.corpus.by_key(), times, steps
        )

    def _compacted(self, counts: ReplayCounts) -> Machine | None:
        """Return one of the machines with fewer states, if all traces together allow that."""
        if self.corpus.traces == len(self.chosen):
            return None
        smaller = (
            merge_equal_states(machine, counts.machines[kind])
            for kind, machine in self.found.machines.items()
        )
        return next((machine for machine in smaller if machine is not None), None)

    def _use_smaller(self, machine: Machine) -> Conflict | None:
        """Replace a machine by a smaller one; other machines read the states of the first."""
        fit = replace(self.fits[machine.kind], machine=machine)
        if machine.kind == "transition":
            return self.learn(self.chosen, {machine.kind: fit})
        self.fits[machine.kind] = fit
        self.found = replace(self.found, machines=self.found.machines.replacing(machine))
        return None

    def _may_try_ending(self) -> bool:
        """Return whether a machine for the ends of episodes may be learned unasked.

        Not if the user names outputs; and after a failure only with twice the traces.
        """
        is_done = TERMINATED in self.outputs or self.corpus.traces < 2 * self.tried_ending
        return self.context.options.outputs is None and not is_done

    def _try_ending(self) -> None:
        """Add a machine for the ends of episodes if it saves more bits than it takes."""
        bits = self._bits_to_save()
        some = self.corpus.fetch(self.chosen)
        fits = self.fitter.fit_ending(some, self.chosen, self.outputs, self.fits)
        if fits is not None and _bits(fits[TERMINATED].machine) < bits:
            self.outputs = [*self.outputs, TERMINATED]
            self.fits = fits
        else:
            self.tried_ending = self.corpus.traces
        timing = self.context.options.timing
        self.found = found_of(self.fits, timing, self.found.steps, self.tried_ending)

    def _bits_to_save(self) -> float:
        """Return `_open_bits` of the distinct traces: repeating traces must change nothing."""
        traces = self.corpus.fetch(self.corpus.distinct())
        distinct = Corpus(InMemorySource([traces]), self.corpus.rounding)
        return _open_bits(self._replayed(distinct))

    def _replayed(self, corpus: Corpus, *, since: int = 0, shortest: bool = False) -> ReplayCounts:
        started = time.perf_counter()
        counts = replay(
            self.found.machines,
            corpus,
            self.named_trivial or (),
            since=since,
            # Reading files takes longest, so they are read once.
            shortest=shortest or not corpus.in_memory,
            progress=self._reporter(corpus),
        )
        self.replay_seconds += time.perf_counter() - started
        return counts

    def _reporter(self, corpus: Corpus) -> Callable[[int], None] | None:
        return self.context.shard_reporter(REPLAYING, corpus.shards, corpus.steps, self.rounds)


def _named_trivial(context: InferenceContext, corpus: Corpus) -> frozenset[Label] | None:
    """Return the labels that the user names as trivial; None if they are judged."""
    options, labels = context.options, corpus.alphabets.labels
    if not options.remove_trivial or options.trivial == "auto":
        return None
    return frozenset(labels[code] for code in trivial_codes(labels, options.trivial))


@cache
def _version() -> str:
    return version("resolvent")


def _bits(machine: Machine) -> float:
    """Return the number of bits that the transitions of a machine take."""
    labels = len(machine.labels) - len(machine.trivial)
    return machine.states * labels * log2(machine.states)


def _open_bits(counts: ReplayCounts) -> float:
    """Return the number of bits that say which steps end episodes if augmented states do not."""
    endings = counts.endings
    undecided = endings[endings["ended"] < endings["count"]]
    share = undecided["ended"] / undecided["count"]
    entropy = share * log2(share) + (1 - share) * log2(1 - share)
    return -float(np.sum(undecided["count"] * entropy))


def _certificates(
    fit: Fit, machines: Machines, refinement: Refinement
) -> dict[str, MinimalityProof[Machine]]:
    """Return the proofs; if they hold for a sample only, an alternative may fit that alone."""
    if refinement.traces == refinement.all_traces:
        return fit.certificates
    return {
        kind: replace(
            certificate,
            states=machines[kind].states,
            unique=certificate.unique or None,
            alternative=None,
        )
        for kind, certificate in fit.certificates.items()
    }
