"""Counterexample-guided refinement: learn from some traces, replay all, add those that fail.

Input: a corpus. Output: an `InferenceResult` whose machines explain all traces, or the `Conflict`
that no machines without noise explain.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from resolvent._util.math import log2
from resolvent.evaluation.diagnosis.diagnose import warnings_of
from resolvent.inference.algorithm import infer_machines
from resolvent.inference.conflict import Conflict
from resolvent.inference.context import InferenceContext, outputs_of
from resolvent.inference.counterexamples import (
    counterexamples,
    merge_equal_states,
    observed_termination,
    traces_with_rare_transitions,
    transitions_at_steps,
    with_evidence,
)
from resolvent.inference.fit import Fit, InferenceState, MachineFit, Refinement
from resolvent.inference.result import InferenceResult
from resolvent.inference.summary import time_ran_out_warning
from resolvent.inference.task import TrainingSet
from resolvent.machines import Machine, Provenance, machines_of
from resolvent.machines.build import StateLimitExceeded
from resolvent.machines.tables import no_numbers
from resolvent.preprocess.reduction import remove_trivial, trivial_codes
from resolvent.replay.corpus import REPLAYING, Corpus
from resolvent.replay.counts import ReplayCounts
from resolvent.replay.replaying import replay
from resolvent.traces import NO_EVENT
from resolvent.traces.schema import TERMINATED

REFINE_ABOVE_STEPS = 500_000
"""Number of steps above which inference refines by default."""

SAMPLE_STEPS = 50_000
"""Number of steps that the first round learns from."""

NOISY_STEPS = 1_000_000
"""Number of steps of files that machines with noise are learned from."""

STEPS_PER_TRANSITION = 50
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

MOST_TERMINATION_NODES: Final = 50_000
"""Maximum number of nodes of a prefix tree from which a machine for terminations is tried. If they
are random, merging larger trees takes long and finds a state for each unexpected one."""

WORTH_A_THREAD = 20_000
"""Number of steps from which a digest of traces is computed while learning: a thread takes longer
to start than the digest of fewer."""

Numbers: TypeAlias = NDArray[np.int64]


def refine(context: InferenceContext, corpus: Corpus) -> InferenceResult | Conflict:
    """Infer machines without noise from a corpus."""
    options = context.options
    refines = corpus.steps > REFINE_ABOVE_STEPS and options.strategy.refines
    if options.refine is not None or not corpus.in_memory:
        refines = options.refine is not False
    with ThreadPoolExecutor(1) as background:  # learning leaves a core idle
        if corpus.in_memory and corpus.steps > WORTH_A_THREAD:
            background.submit(lambda: corpus.digest)
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
    outputs = [machine.predicts for machine in before.fit.machines.values()]
    if before.fit.unfinished:
        return refine(context, corpus)
    if options.outputs is None:
        wanted = outputs_of(options, corpus.alphabets)
        if wanted != [name for name in outputs if name != TERMINATED or name in wanted]:
            return refine(context, corpus)  # more traces may have more to predict
    loop = RefinementLoop(context, corpus, outputs)
    loop.data, loop.fit = replace(loop.data, numbers=before.chosen), before.fit
    if corpus.alphabets is not before.corpus.alphabets:  # earlier counts have other codes
        return loop.run()
    return loop.run(before.counts + loop.replay(since=len(corpus.shards) - 1))


class RefinementLoop:
    """The state of one refinement: the traces learned from, and the machines so far."""

    def __init__(
        self,
        context: InferenceContext,
        corpus: Corpus,
        outputs: list[str],
        noisy: frozenset[str] = frozenset(),
    ) -> None:
        self.context, self.corpus = context, corpus
        options, labels, named = context.options, corpus.alphabets.labels, None
        if options.remove_trivial and options.trivial != "auto":
            named = frozenset(labels[code] for code in trivial_codes(labels, options.trivial))
        self.data = TrainingSet(context, corpus, no_numbers(), tuple(outputs), named, noisy)
        self.fit = Fit({}, context.options.timing, 0)
        self.rounds = 1
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def run(self, counts: ReplayCounts | None = None) -> InferenceResult | Conflict:
        """Replay and learn in turn until the machines explain every trace.

        `counts` are those of the present machines, if they were replayed already.
        """
        while True:
            counts = self.replay() if counts is None else counts
            if self.fit.unfinished:  # there is no time to learn from more traces
                break
            if not self.context.in_time():  # the machines so far are the best there are
                self._update_fits(
                    replace(fit, finished=name not in counts.unexplained)
                    for name, fit in self.fit.by_name.items()
                )
                break
            improved = self._improve(counts)
            if isinstance(improved, Conflict):
                return improved
            if not improved:
                break
            counts = None
        if not counts.consistent and not self.fit.unfinished:
            raise AssertionError("the machines do not explain what they were learned from")
        result = self.result(counts)
        if self.fit.unfinished:
            result = replace(result, warnings=(time_ran_out_warning(result), *result.warnings))
        return result

    def _improve(self, counts: ReplayCounts) -> bool | Conflict:
        """Learn from counterexamples, or else make machines smaller or add one for terminations.

        Returns False if nothing changed.
        """
        if self.corpus.in_memory and not counts.consistent:
            # The shortest traces that show a conflict matter only if there is one.
            counts = self.replay(shortest=True)
        more = counterexamples(counts, self.data.numbers, FIRST_COUNTEREXAMPLES << self.rounds)
        if len(more):
            rare = self.with_rare_transitions()
            sample = self.corpus.sample(SAMPLE_STEPS << (self.rounds - (len(rare) > 0)))
            chosen = np.unique(np.concatenate([self.data.numbers, more, rare, sample]))
            conflict = self.learn_enough(chosen)
            self.rounds += 1
            return conflict or True
        if len(self.data.numbers) < self.corpus.traces:
            for name, machine in self.fit.machines.items():
                if (smaller := merge_equal_states(machine, counts.machines[name])) is not None:
                    return self._use_smaller(smaller) or True
        # After a failure only with twice the traces.
        may_try = self.corpus.traces >= 2 * self.fit.failed_termination
        may_try &= self.context.options.outputs is None and TERMINATED not in self.data.outputs
        if may_try and _bits_of_termination(counts):
            self._try_termination()
            return True
        return False

    def learn(
        self,
        chosen: Numbers,
        known: Mapping[str, MachineFit] = MappingProxyType({}),
        most_states: int | None = None,
    ) -> Conflict | None:
        """Learn machines from some traces; return a conflict if there are none.

        Unless some are known, a machine for terminations that the user did not request is dropped:
        the new machines may predict them without it.
        """
        outputs = self.data.outputs
        if not known and self.context.options.outputs is None:
            outputs = tuple(name for name in outputs if name != TERMINATED)
        data = replace(self.data, numbers=chosen, outputs=outputs, most_states=most_states)
        fits = infer_machines(data, known)
        if isinstance(fits, Conflict):
            return fits
        for name in fits.keys() - known.keys():
            self.seconds[name] += fits[name].statistics.seconds
        self.data = replace(data)  # without its traces, which take memory
        self.fit = replace(self.fit, by_name=fits, steps=data.traces.steps)
        return None

    def learn_enough(self, chosen: Numbers) -> Conflict | None:
        """Learn from some traces, or from more if machines have too many states for so few.

        A few steps for each transition are so little evidence that merging finds far too many
        states, and takes long to do so.
        """
        steps_per_state = STEPS_PER_TRANSITION * len(self.corpus.alphabets.labels)
        fewer = -1
        while fewer < len(chosen) < self.corpus.traces:
            fewer = len(chosen)
            steps = self.corpus.fetch(chosen).steps
            most_states = max(FEW_STATES, steps // steps_per_state)
            try:
                return self.learn(chosen, most_states=most_states)
            except StateLimitExceeded:
                chosen = np.union1d(chosen, self.corpus.sample(MORE_STEPS * steps))
        return self.learn(chosen)

    def replay(
        self, corpus: Corpus | None = None, *, since: int = 0, shortest: bool = False
    ) -> ReplayCounts:
        """Replay traces through the machines, by default all."""
        corpus, started = corpus or self.corpus, time.perf_counter()
        report = self.context.shard_reporter(REPLAYING, corpus.shards, corpus.steps, self.rounds)
        counts = replay(
            self.fit.machines,
            corpus,
            self.data.named_trivial or (),
            since=since,
            # Reading files takes longest, so they are read once.
            shortest=shortest or not corpus.in_memory,
            progress=report,
        )
        self.seconds["replay"] += time.perf_counter() - started
        return counts

    def result(self, counts: ReplayCounts, *, noisy: bool = False) -> InferenceResult:
        """Return the result, with machines that have the outputs and counts of all traces."""
        corpus, fit, options = self.corpus, self.fit, self.context.options
        chosen, trivial = self.data.numbers, self.data.named_trivial or ()
        constants = options.remove_redundant
        machines = machines_of(
            with_evidence(fit.machines, counts, trivial, constants=constants),
            options.timing,
            termination=observed_termination(counts),
            provenance=Provenance(
                _version(), corpus.traces, corpus.steps, corpus.digest, options.as_dict()
            ),
            preprocessor=self.context.preprocessor,
        )
        seconds = {name: self.seconds[name] for name in (*machines, "replay")}
        statistics = {
            name: replace(
                fit[name].statistics,
                states=machine.states,
                constant_outputs=len(machine.constant_value),
                outputs_by_state=len(machine.output_value),
                seconds=seconds[name],
            )
            for name, machine in machines.items()
        }
        return InferenceResult(
            machines,
            options,
            corpus.traces,
            corpus.steps,
            statistics,
            Refinement(self.rounds, len(chosen), fit.steps, corpus.traces, noisy=noisy),
            {**seconds, "total": time.perf_counter() - self.context.started},
            InferenceState(corpus, chosen, fit, counts),
            warnings_of(counts, corpus, merged=options.strategy.merges and not fit.unfinished),
        )

    def with_rare_transitions(self) -> Numbers:
        """Return traces with rare transitions, with no more steps than the sample grows by.

        None for traces in files, which would have to be read once more.
        """
        if not self.corpus.in_memory:
            return no_numbers()
        traces = self.corpus.as_traces()
        return traces_with_rare_transitions(
            transitions_at_steps(self.fit.machines, traces),
            traces.offsets,
            self.corpus.pool.number,
            RARE_TIMES << self.rounds,
            SAMPLE_STEPS << (self.rounds - 1),
        )

    def _use_smaller(self, machine: Machine) -> Conflict | None:
        """Replace a machine by a smaller one; other machines read the states of the first."""
        fit = replace(self.fit[machine.name], machine=machine)
        if machine.name == "transition":
            return self.learn(self.data.numbers, {machine.name: fit})
        self._update_fits([fit])
        return None

    def _update_fits(self, fits: Iterable[MachineFit]) -> None:
        by_name = {**self.fit.by_name, **{fit.machine.name: fit for fit in fits}}
        self.fit = replace(self.fit, by_name=by_name)

    def _try_termination(self) -> None:
        """Add a machine for terminations, which the user did not request, if it saves bits.

        If terminations are random, traces contradict each other, or the machine memorizes them.
        """
        traces = self.corpus.fetch(self.corpus.distinct())  # repeating traces must change nothing
        bits = _bits_of_termination(self.replay(self.corpus.with_traces(traces)))
        data = replace(self.data, outputs=(*self.data.outputs, TERMINATED), most_states=None)
        no_event = [code for code, label in enumerate(data.traces.labels) if label == NO_EVENT]
        if len(remove_trivial(data.histories, no_event).tree) <= MOST_TERMINATION_NODES:
            fits = infer_machines(data, self.fit.by_name)
            if not isinstance(fits, Conflict) and _bits(fits[TERMINATED].machine) < bits:
                self.data, self.fit = replace(data), replace(self.fit, by_name=fits)
                self.seconds[TERMINATED] += fits[TERMINATED].statistics.seconds
                return
        self.fit = replace(self.fit, failed_termination=self.corpus.traces)


@cache
def _version() -> str:
    return version("resolvent")


def _bits(machine: Machine) -> float:
    """Return the number of bits that the transitions of a machine take."""
    labels = len(machine.labels) - len(machine.trivial)
    return machine.states * labels * log2(machine.states)


def _bits_of_termination(counts: ReplayCounts) -> float:
    """Return the number of bits that say which steps end episodes if augmented states do not."""
    rows = counts.terminations
    open_rows = rows[rows["ended"] < rows["count"]]
    share = open_rows["ended"] / open_rows["count"]
    entropy = share * log2(share) + (1 - share) * log2(1 - share)
    return -float(np.sum(open_rows["count"] * entropy))
