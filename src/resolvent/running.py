"""One inference under way: machines from all traces, or from few and then those not explained."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from resolvent.arithmetic import log2
from resolvent.diagnosis import warnings_of
from resolvent.errors import OptionError, TimeLimitReached
from resolvent.exact import Certificate
from resolvent.learning import NO_TIME, Learner
from resolvent.machines import Machine, Machines, Provenance, machines_of, output_order
from resolvent.merging import TooManyStates
from resolvent.options import Options
from resolvent.progress import Listener, Progress
from resolvent.reduction import trivial_codes
from resolvent.refinement import (
    compacted,
    counterexamples,
    covering,
    observed_termination,
    rebuilt,
)
from resolvent.replay import Corpus, Replay, replay, states_at_steps
from resolvent.replay.coded import Alphabets
from resolvent.replay.corpus import READING
from resolvent.replay.keeping import keeping
from resolvent.replay.replaying import REPLAYING
from resolvent.result import Found, InferenceResult, Refinement, Standing, cut_short
from resolvent.samples import Histories
from resolvent.senses import Senses
from resolvent.traces import Label, TraceSet
from resolvent.traces.column_names import (
    OBSERVATION,
    TERMINATED,
    default_outputs,
)
from resolvent.traces.shards import Shards, ShardsInMemory
from resolvent.wording import listed, short
from resolvent.workers import workers_named

REFINE_ABOVE = 500_000
"""Steps above which `infer` refines, unless it is told whether to."""

SAMPLE_STEPS = 50_000
"""Steps that refinement learns from at first."""

NOISY_STEPS = 1_000_000
"""Steps of a folder's traces that machines with noise are learned from."""

STEPS_PER_MOVE = 50
"""Steps that some of many traces should have, on average, for each label read in each state."""

FEW_STATES = 32
"""Machines of so many states are learned from few steps, whatever the number of labels: most
labels may be rare."""

MORE_STEPS = 4
"""How many times as many steps are taken where some were too few."""

FIRST_COUNTEREXAMPLES = 16
"""Half of the traces that the first round of refinement adds; each later one adds twice as many."""

RARE_TIMES = 4
"""Half of the traces with each move that the first round of refinement takes, if there are so many;
each later one takes twice as many."""


WORTH_A_THREAD = 20_000
"""Steps from which a digest of traces is made beside learning: of fewer it takes no longer than
to begin a thread."""


class Run:
    """One inference under way: its clock, and what it counted.

    `given` are the numbers with which a user knows the traces, where some were left out before.
    """

    def __init__(
        self,
        options: Options,
        progress: Listener | None,
        senses: Senses,
        started: float | None = None,
        given: NDArray[np.int64] | None = None,
    ) -> None:
        self.started = time.perf_counter() if started is None else started
        self.options = options
        self.senses = senses
        self.progress = progress
        self.replaying = 0.0
        self.given = given
        self.workers = keeping(workers_named(options.on), options.resume)
        self._round = 1

    def corpus_of(self, shards: Shards) -> Corpus:
        """Look through traces once, and return them as all that the inference is about."""
        digits = self.options.reward_digits
        rounding = {} if digits is None else {"reward": digits}
        rows = getattr(shards, "rows", None) or 0
        report = self._reporter(READING, shards, rows)
        return Corpus(shards, rounding, report, workers=self.workers)

    def exact(self, corpus: Corpus) -> InferenceResult:
        """Infer machines without noise from a corpus.

        Raises:
            ContradictoryTraces: when no such machines explain all traces.
        """
        refines = corpus.steps > REFINE_ABOVE and self.options.strategy.refines
        if self.options.refine is not None or not corpus.in_memory:
            refines = self.options.refine is not False
        with ThreadPoolExecutor(1) as beside:  # learning leaves a core free
            if corpus.in_memory and corpus.steps > WORTH_A_THREAD:
                beside.submit(lambda: corpus.digest)
            learner = self._learner(corpus, outputs_of(self.options, corpus.alphabets))
            chosen = corpus.sample(SAMPLE_STEPS) if refines else corpus.all
            chosen, found = self._learned(corpus, learner, chosen)
            return self._refined(corpus, learner, chosen, found)

    def most_likely(self, corpus: Corpus, noisy: Collection[str]) -> InferenceResult:
        """Infer machines, the most likely ones for outputs that are noisy, and replay all traces.

        Machines for other outputs have no noise.

        Raises:
            ContradictoryTraces: when traces contradict each other in other outputs.
        """
        outputs = outputs_of(self.options, corpus.alphabets)
        learner = replace(self._learner(corpus, outputs), noisy=frozenset(noisy))
        chosen = corpus.all if corpus.in_memory else corpus.sample(NOISY_STEPS)
        found = learner.learn(corpus.fetch(chosen), chosen)
        shown = self._replay(corpus, found.machines)
        refinement = Refinement(1, len(chosen), found.steps, corpus.traces, noisy=True)
        return self._result(Standing(corpus, chosen, found, shown), learner, refinement)

    def extended(self, before: Standing, corpus: Corpus) -> InferenceResult:
        """Go on from where an inference without noise ended, with a corpus that has more traces.

        Raises:
            ContradictoryTraces: when the new ones contradict each other or those before.
        """
        outputs = [one.predicts for one in before.found.machines.values()]
        if before.found.unfinished:
            return self.exact(corpus)
        if self.options.outputs is None:
            wanted = outputs_of(self.options, corpus.alphabets)
            if wanted != [name for name in outputs if name != TERMINATED or name in wanted]:
                return self.exact(corpus)  # more traces may show that there is more to predict
        learner = self._learner(corpus, outputs)
        learner.recall(before.found)
        shown = None  # what was shown before can be added to, unless codes have changed
        if corpus.alphabets is before.corpus.alphabets:
            more = self._replay(corpus, before.found.machines, since=len(corpus.shards) - 1)
            shown = before.shown + more
        return self._refined(corpus, learner, before.chosen, before.found, shown)

    def _refined(
        self,
        corpus: Corpus,
        learner: Learner,
        chosen: NDArray[np.int64],
        found: Found,
        shown: Replay | None = None,
    ) -> InferenceResult:
        """Replay and learn in turn until the machines explain every trace."""
        rounds = 1
        while True:
            if shown is None:
                shown = self._replay(corpus, found.machines)
            if found.unfinished:  # what more traces show, there is no time to learn
                break
            if self.time_left() == NO_TIME:  # what was learned by now is the best there is
                found = replace(found, unfinished=shown.unexplained)
                break
            if corpus.in_memory and not shown.consistent:
                # Which traces show a conflict matters only if there is one.
                shown = self._replay(corpus, found.machines, shortest=True)
            more = counterexamples(shown, chosen, FIRST_COUNTEREXAMPLES << rounds)
            if len(more):
                # Machines that fail may need more traces with what is rare, or of any kind.
                rare = self._with_rare_moves(corpus, found.machines, rounds)
                others = corpus.sample(SAMPLE_STEPS << (rounds - (len(rare) > 0)))
                chosen = np.unique(np.concatenate([chosen, more, rare, others]))
                chosen, found = self._learned(corpus, learner, chosen)
                rounds += 1
                self._round = rounds
            elif fewer := _compacted(found.machines, shown, corpus.traces - len(chosen)):
                if fewer.kind == "transition":  # the others are told its states
                    found = learner.learn(corpus.fetch(chosen), chosen, {fewer.kind: fewer})
                else:
                    found = replace(found, machines=found.machines.replacing(fewer))
            elif learner.may_try_ending(corpus.traces) and _open_bits(shown):
                some, bits = corpus.fetch(chosen), self._bits_to_save(corpus, found.machines)
                found = learner.learn_ending(some, chosen, found, bits=bits, of=corpus.traces)
            else:
                break
            shown = None
        if not shown.consistent and not found.unfinished:
            raise AssertionError("the machines do not explain what they were learned from")
        refinement = Refinement(rounds, len(chosen), found.steps, corpus.traces)
        result = self._result(Standing(corpus, chosen, found, shown), learner, refinement)
        if found.unfinished:
            result = replace(result, warnings=(cut_short(result), *result.warnings))
        return result

    def _learned(
        self, corpus: Corpus, learner: Learner, chosen: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Found]:
        """Learn from some traces, or from more where machines have too many states for so few.

        Few steps for each move tell so little that merging finds far too many states, and
        takes long to do so.
        """
        moves = STEPS_PER_MOVE * len(corpus.alphabets.labels)
        fewer = -1
        while fewer < len(chosen) < corpus.traces:
            some, fewer = corpus.fetch(chosen), len(chosen)
            try:
                most = max(FEW_STATES, some.steps // moves)
                return chosen, learner.learn(some, chosen, most_states=most)
            except TooManyStates:
                chosen = np.union1d(chosen, corpus.sample(MORE_STEPS * some.steps))
        return chosen, learner.learn(corpus.fetch(chosen), chosen)

    def _with_rare_moves(
        self, corpus: Corpus, machines: Machines, rounds: int
    ) -> NDArray[np.int64]:
        """Return traces that take moves of the machines which few traces take.

        They have no more steps than what is learned from grows by otherwise. None for traces in
        files, which would have to be read once more.
        """
        if not corpus.in_memory:
            return np.empty(0, np.int64)
        traces = corpus.together()
        histories = Histories.of(traces, self.options.timing)
        states = states_at_steps(machines, traces)
        # A move is where a label is read: from the state a step before, the first at the start.
        moves = []
        for kind in machines:
            before = np.roll(states[kind], 1)
            before[traces.offsets[:-1]] = 0
            known = (before >= 0) & (histories.beta >= 0)
            move = before.astype(np.int64) * len(traces.labels) + histories.beta
            moves.append(np.where(known, move, -1))
        steps = SAMPLE_STEPS << (rounds - 1)
        return covering(moves, traces.offsets, corpus.by_key(), RARE_TIMES << rounds, steps)

    def _learner(self, corpus: Corpus, outputs: list[str]) -> Learner:
        return Learner(
            self.options,
            outputs,
            self._named_trivial(corpus),
            corpus.place,
            self.time_left,
            self.progress,
            rewards=self.senses.rewards,
            # Threads are there whoever asks: what they would do is done as it always was.
            workers=None if self.workers.name == "threads" else self.workers,
        )

    def _named_trivial(self, corpus: Corpus) -> frozenset[Label] | None:
        """Return the labels that are trivial because the user says so; None if they are judged."""
        if not self.options.remove_trivial or self.options.trivial == "auto":
            return None
        labels = corpus.alphabets.labels
        return frozenset(labels[code] for code in trivial_codes(labels, self.options.trivial))

    def _replay(
        self,
        corpus: Corpus,
        machines: Machines,
        *,
        since: int = 0,
        shortest: bool = False,
    ) -> Replay:
        started = time.perf_counter()
        shown = replay(
            machines,
            corpus,
            self._named_trivial(corpus) or (),
            since=since,
            # Reading files again takes longest, so those are gone through once.
            shortest=shortest or not corpus.in_memory,
            progress=self._reporter(REPLAYING, corpus.shards, corpus.steps),
        )
        self.replaying += time.perf_counter() - started
        return shown

    def _bits_to_save(self, corpus: Corpus, machines: Machines) -> float:
        """Return `_open_bits` of traces that differ: repeating traces must change nothing."""
        distinct = Corpus(ShardsInMemory([corpus.fetch(corpus.distinct())]), corpus.rounding)
        return _open_bits(self._replay(distinct, machines))

    def _result(self, end: Standing, learner: Learner, refinement: Refinement) -> InferenceResult:
        corpus, found = end.corpus, end.found
        provenance = Provenance(
            version=_version(),
            traces=corpus.traces,
            steps=corpus.steps,
            traces_sha256=corpus.digest,
            options=self.options.as_dict(),
        )
        machines = machines_of(
            rebuilt(
                found.machines,
                end.shown,
                learner.trivial or frozenset(),
                constants=self.options.remove_redundant,
            ),
            self.options.timing,
            observed_termination(end.shown),
            provenance,
            self.senses,
        )
        statistics = {
            kind: replace(
                found.statistics[kind],
                states=machine.states,
                constant_outputs=len(machine.constant_value),
                outputs_by_state=len(machine.output_value),
            )
            for kind, machine in machines.items()
        }
        merged = self.options.strategy.merges and not found.unfinished
        warnings = warnings_of(end.shown, corpus, merged=merged)
        seconds = {kind: one.seconds for kind, one in statistics.items()}
        total = time.perf_counter() - self.started
        return InferenceResult(
            machines=machines,
            options=self.options,
            traces=corpus.traces,
            steps=corpus.steps,
            statistics=statistics,
            refinement=refinement,
            seconds={**seconds, "replay": self.replaying, "total": total},
            trivial=found.verdicts,
            certificates=_certificates(found, machines, refinement),
            standing=end,
            warnings=warnings,
        )

    def _reporter(self, doing: str, given: Shards, steps: int) -> Callable[[int], None] | None:
        """Return what tells the listener, shard by shard, how far it is; and stops in time.

        Only files take so long to go through that it is worth stopping. There are about so many
        steps in them.
        """
        began, round_ = time.perf_counter(), self._round
        shards, in_files = len(given), not isinstance(given, ShardsInMemory)
        if shards == 1:
            return None

        def report(done: int) -> None:
            if self.progress is not None:
                took = time.perf_counter() - began
                self.progress(doing, Progress(0, 0, done, shards, round_, steps, took))
            if in_files and done < shards and self.time_left() == NO_TIME:
                raise TimeLimitReached(
                    f"time ran out while {doing} traces, with {done} of {shards} pieces done: "
                    f"raise the time limit"
                )

        return report

    def time_left(self) -> float | None:
        """Return how many seconds are left; None where there is no limit."""
        limit = self.options.time_limit
        if limit is None:
            return None
        return max(limit - (time.perf_counter() - self.started), NO_TIME)


def outputs_of(options: Options, known_of: TraceSet | Alphabets) -> list[str]:
    """Return the columns to predict, "observation" first: the others are told its states."""
    columns = tuple(known_of.columns)
    known = (OBSERVATION, TERMINATED, *columns)
    if options.outputs is None:
        return list(default_outputs(columns, observations=len(known_of.observations)))
    for name in options.outputs:
        if name not in known:
            raise OptionError(
                f"outputs names '{short(name)}', which the traces do not have: they have "
                f"{listed(known)}"
            )
    return sorted(options.outputs, key=output_order)


@cache
def _version() -> str:
    return version("resolvent")


def _compacted(machines: Machines, shown: Replay, unlearned: int) -> Machine | None:
    """Return one of the machines with fewer states, if all traces together allow for that."""
    if not unlearned:
        return None
    found = (compacted(one, shown.machines[kind]) for kind, one in machines.items())
    return next((one for one in found if one is not None), None)


def _open_bits(shown: Replay) -> float:
    """Return how many bits it takes to say which steps end episodes where situations do not."""
    endings = shown.endings
    open_ones = endings[endings["ended"] < endings["count"]]
    share = open_ones["ended"] / open_ones["count"]
    each = share * log2(share) + (1 - share) * log2(1 - share)
    return -float(np.sum(open_ones["count"] * each))


def _certificates(
    found: Found, machines: Machines, refinement: Refinement
) -> dict[str, Certificate[Machine]]:
    """Return what was proven; on some traces only, another machine may fit those alone."""
    if refinement.traces == refinement.all_traces:
        return found.certificates
    return {
        kind: replace(
            certificate,
            states=machines[kind].states,
            unique=certificate.unique or None,
            alternative=None,
        )
        for kind, certificate in found.certificates.items()
    }
