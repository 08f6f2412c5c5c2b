"""The whole inference: traces → a Transition Machine, a Reward Machine, or others.

The paper's algorithm itself is in `learning`; `infer` gives it all traces, or
few at first and then those that the machines cannot explain.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from math import log2
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resolvent.diagnosis import warnings_of
from resolvent.errors import ContradictoryTraces, OptionError, TimeLimitReached, TraceError
from resolvent.events import find_events
from resolvent.exact import Certificate
from resolvent.learning import NO_TIME, Learner
from resolvent.machines import Machine, Machines, Provenance, machines_of, output_order
from resolvent.merging import STRATEGIES, Strategy
from resolvent.options import Options
from resolvent.progress import Listener, Progress
from resolvent.reduction import trivial_codes
from resolvent.refinement import compacted, counterexamples, observed_termination, rebuilt
from resolvent.replay import Corpus, Replay, replay
from resolvent.replay.coded import Alphabets
from resolvent.result import Found, InferenceResult, Refinement, Standing, machines_in
from resolvent.samples import LabelTiming
from resolvent.senses import Discretise, Senses, auto_discretise
from resolvent.traces import Label, Trace, TraceSet
from resolvent.traces.column_names import (
    ACTION,
    ALWAYS_READ,
    OBSERVATION,
    TERMINATED,
    default_outputs,
)
from resolvent.traces.given import as_trace_set, as_traces
from resolvent.traces.labelling import GIVEN, Labelling
from resolvent.traces.shards import Shards, ShardsInMemory, TraceFolder
from resolvent.trust import Evidence, gather
from resolvent.wording import listed, short

REFINE_ABOVE = 500_000
"""Steps above which `infer` refines, unless it is told whether to."""

SAMPLE_STEPS = 50_000
"""Steps that refinement learns from at first."""

NOISY_STEPS = 1_000_000
"""Steps of a folder's traces that machines with noise are learned from."""

FIRST_COUNTEREXAMPLES = 16
"""Half of the traces that the first round of refinement adds; each later one adds twice as many."""

READING, REPLAYING = "reading", "replaying"
"""What `progress` is told instead of a machine's name while shards are gone through."""

FINDING_EVENTS = "finding events"
"""What it is told while labels are looked for."""


def infer(
    traces: TraceSet | TraceFolder | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | Labelling = "given",
    discretise: Discretise | Literal["auto"] | None = None,
    noise: Literal["none", "auto"] = "none",
    strategy: str | Strategy = "edsm",
    timing: LabelTiming | str | None = None,
    trivial: Iterable[Label | str] | Literal["auto"] = "auto",
    supplement: bool = True,
    remove_redundant: bool = True,
    remove_trivial: bool = True,
    refine: bool | None = None,
    reward_digits: int | None = None,
    engine: str = "native",
    seed: int = 0,
    effort: float = 1.0,
    time_limit: float | None = None,
    progress: Listener | None = None,
) -> InferenceResult:
    """Infer the machines that explain the traces.

    Args:
        traces: What the agent saw; or a folder of it (`scan_traces`) that need
            not fit into memory; or single traces; or the path of a file of traces, which is
            read as by `read_traces`.
        outputs: What machines should predict: "observation" (the next one), "reward",
            "terminated", and further columns of the traces by name. By default the two
            of the paper, as far as the traces have rewards; and whether episodes end, if
            that depends on memory which those two do not have. Traces of a log, with one
            observation throughout, no rewards and further columns, get a machine for each
            of these columns instead.
        labels: What machines read as labels: "given" for those of the traces; "observation",
            "action" or "action+observation" to make them of what is seen and done, each
            a label of its own, or "auto" to find which of these are events, and to put
            those that act alike into one. The machines keep it, so that they make labels
            by themselves ever after; `result.events` says what became an event.
        discretise: How numbers in observations are put into intervals, if they are: as a
            `Discretise`, which is fitted to the traces unless it is already, or "auto" for
            as many intervals as pay. The machines keep this, too.
        noise: What to do where traces contradict each other: "none" to raise an error, "auto"
            to take it for chance and find the most likely machines, whose states answer
            with a distribution (`machine.distribution`); `result.noise_text()` says how
            much noise there is. Traces without contradictions give the same machines.
        strategy: How machines are found. "edsm" merges by most evidence, "rpni" in
            the paper's order. "search" looks for the smallest machine it can find,
            and needs far fewer traces. "exact" does so too, and proves what it can:
            see `result.certificates`; needs the extra `exact`. Or a `Strategy` of
            your own.
        timing: Which labels are read before a step is answered. By default all but the
            first, "current"; labels that are made of observations count from the first on,
            "current-with-initial".
        trivial: Labels known to change no state, besides "no event"; as sets of
            propositions or as the texts they print as. "auto" judges by the traces
            which labels a machine can do without; `result.trivial` says why.
        supplement: Pair observations with Transition Machine states for the
            other machines.
        remove_redundant: Leave questions with one answer throughout out of the
            search, and put the answer back afterwards.
        remove_trivial: Leave trivial labels out of the search, and put them back
            as self-loops.
        refine: Learn from few traces, replay all others, add those that the
            machines cannot explain, and so on until they explain all. By default
            when there are more than 500,000 steps.
        reward_digits: Round rewards to so many decimals before comparing them.
        engine: "native", or "python" for the executable specification, which also
            runs strategies of your own, whatever stands here.
        seed: Of the search, for "search" and "exact".
        effort: How much the search tries at most before it takes the best it has.
        time_limit: Seconds for the whole inference; `TimeLimitReached` after that. With
            "exact" no error: the best machines, and how far they are proven minimal.
        progress: Called now and then with the machine's name and how far it is.

    Raises:
        ContradictoryTraces: when no deterministic machine over these labels can
            explain the traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> house = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> pair = infer(house).machines
    >>> pair.transition.states, pair.reward.states
    (2, 2)
    >>> list(infer(house, outputs=["reward"]).machines)
    ['reward']
    """
    options = Options(
        outputs=outputs,  # type: ignore[arg-type]  # Options makes of each what it should be
        labels=labels,  # type: ignore[arg-type]
        discretise=discretise,
        noise=noise,
        strategy=strategy,  # type: ignore[arg-type]
        timing=timing,  # type: ignore[arg-type]
        trivial=trivial,  # type: ignore[arg-type]
        supplement=supplement,
        remove_redundant=remove_redundant,
        remove_trivial=remove_trivial,
        reward_digits=reward_digits,
        engine=engine,
        time_limit=time_limit,
        refine=refine,
        seed=seed,
        effort=effort,
    )
    named = (name for name in options.outputs or () if name not in ALWAYS_READ)
    return infer_with(options, as_traces(traces, named), progress)


def infer_with(
    options: Options,
    traces: TraceSet | TraceFolder,
    progress: Listener | None = None,
) -> InferenceResult:
    """Infer machines as `infer` does, with options that are made already."""
    if isinstance(traces, TraceSet) and len(traces) == 0:
        raise TraceError("there are no traces to infer from: collect or read at least one")
    if isinstance(traces, TraceFolder) and options.refine is False:
        raise OptionError("a scanned folder is always refined: read it whole with read_traces")
    shards: Shards = ShardsInMemory([traces]) if isinstance(traces, TraceSet) else traces
    numbers = _fitted(options, shards)
    if options.labels == "auto":
        return _with_events(options, Senses(GIVEN, numbers).on_shards(shards), progress, numbers)
    senses = Senses(_following_inputs(options.labels, numbers, shards), numbers)
    return _Run(options, progress, senses).started_with(senses.on_shards(shards))


def _following_inputs(
    labelling: Labelling, numbers: Discretise | None, shards: Shards
) -> Labelling:
    """Return labels made of actions where those given say just that, as a log's inputs do.

    Otherwise they would name numbers that the actions, put into intervals, no longer have.
    """
    if labelling.is_given and numbers is not None and numbers.of == ACTION:
        traces = shards.read(0)
        of_actions = Labelling("action")
        if of_actions.on(traces) == traces:
            return of_actions
    return labelling


def _with_events(
    options: Options, shards: Shards, progress: Listener | None, numbers: Discretise | None
) -> InferenceResult:
    """Infer machines with the labels there are, if these will do, or else with events found."""
    started = time.perf_counter()

    def infer_from(
        shards: Shards,
        labelling: Labelling,
        timing: LabelTiming,
        strategy: Strategy = options.strategy,
    ) -> InferenceResult:
        chosen = replace(options, timing=timing, strategy=strategy)
        return _Run(chosen, progress, Senses(labelling, numbers), started).started_with(shards)

    traces = shards.read(0)
    one_each = len(traces.labels) >= len(traces.observations) > 1  # as labels made of them are
    if len(traces.labels) > 1 and not one_each:
        for timing in dict.fromkeys((options.timing, LabelTiming.CURRENT_WITH_INITIAL)):
            with suppress(ContradictoryTraces):
                return infer_from(shards, GIVEN, timing)
    if progress is not None:
        progress(FINDING_EVENTS, Progress(0, 0, 0, 0))
    found = find_events(
        traces,
        _outputs(options, traces),
        lambda labelled, timing: infer_from(ShardsInMemory([labelled]), GIVEN, timing),
        length=_length,
        seed=options.seed,
        effort=options.effort,
        time_left=_Run(options, None, Senses(), started).time_left,
    )
    senses = Senses(found.labelling, numbers)
    if len(shards) > 1:  # what was found in the first file has to hold in all
        return infer_from(senses.on_shards(shards), found.labelling, found.timing)
    result = found.inferred
    known = result.machines.values()
    if options.strategy.merges and any(
        one.states > found.states.get(one.predicts, one.states) for one in known
    ):  # merging has missed a smaller machine, for that there is one is known
        labelled = ShardsInMemory([found.labelling.on(traces)])
        searched = infer_from(labelled, GIVEN, found.timing, STRATEGIES["search"])
        result = min(result, searched, key=_length)
    return replace(result, machines=result.machines.replacing(senses=senses))


def _length(result: InferenceResult) -> float:
    """Return about how many bits it takes to write down machines: their moves and answers."""
    return sum(
        one.states * (len(one.labels) - len(one.trivial)) * log2(one.states)
        + len(one.output_value) * log2(max(len(one.outputs), 2))
        for one in result.machines.values()
    )


def _fitted(options: Options, shards: Shards) -> Discretise | None:
    """Return intervals for the numbers in observations; those of a folder by its first file."""
    asked = options.discretise
    if asked is None or (asked != "auto" and asked.is_fitted):
        return asked
    traces = shards.read(0)
    if asked == "auto":
        return auto_discretise(traces, _outputs(options, traces))
    return asked.fit(traces)


def update(
    result: InferenceResult, traces: TraceSet, progress: Listener | None = None
) -> InferenceResult:
    """Take more traces into a result: replay them, and repair the machines where they fail."""
    traces = as_trace_set(traces)
    if len(traces) == 0:
        raise TraceError("there are no traces to update with: collect or read at least one")
    senses = result.machines.senses
    run = _Run(result.options, progress, senses)
    try:
        return run.extended(result.standing, senses.on(traces))
    except ContradictoryTraces:
        if result.options.labels != "auto" or not result.standing.corpus.in_memory:
            raise
    # There are other events than those found.
    together = result.standing.corpus.extended(senses.on(traces)).together()
    options = replace(result.options, discretise=senses.discretise)
    return infer_with(options, together, progress)


def evidence(
    machines: Machines | InferenceResult,
    traces: TraceSet,
    *,
    delta: float = 0.05,
    progress: Listener | None = None,
) -> Evidence:
    """Gather what traces say about machines, and what they leave open.

    For machines inferred from these very traces, others are inferred from four fifths
    of them, in the same way, and tested on the rest; that needs machines which say how they
    were inferred, as those in a file do. Traces that are new to the machines test these.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> gathered = evidence(rs.infer(traces).machines, traces)
    >>> print(gathered["transition"].separations[0])
    states 0 and 1: 1 question asked 355 times, such as (corridor, up): corridor (trace 0, step 0) \
against cyanroom (trace 22, step 3)
    """
    strategy = machines.options.strategy if isinstance(machines, InferenceResult) else None
    machines = machines_in(machines)
    traces = machines.senses.on(as_trace_set(traces))
    made = machines.provenance
    infer_again = None
    if made is not None and made.traces_sha256 == traces.digest:
        named = made.options.get("strategy")
        # Of a strategy that is not built in, a file knows the name alone.
        own = isinstance(named, str) and named not in STRATEGIES
        if strategy is not None or not own:
            # What the machines made of raw steps stays as it is: only they are held to the test.
            as_seen = {**made.options, "labels": "given", "discretise": None}
            infer_again = partial(_machines_with, Options.from_dict(as_seen, strategy))
    return gather(machines, traces, infer=infer_again, delta=delta, progress=progress)


def _machines_with(options: Options, traces: TraceSet) -> Machines:
    return infer_with(options, traces).machines


class _Run:
    """One inference under way: its clock, and what it counted."""

    def __init__(
        self,
        options: Options,
        progress: Listener | None,
        senses: Senses,
        started: float | None = None,
    ) -> None:
        self.started = time.perf_counter() if started is None else started
        self.options = options
        self.senses = senses
        self.progress = progress
        self.replaying = 0.0

    def started_with(self, shards: Shards) -> InferenceResult:
        """Infer machines from nothing but traces."""
        digits = self.options.reward_digits
        rounding = {} if digits is None else {"reward": digits}
        return self._begun(Corpus(shards, rounding, self._reporter(READING, len(shards))))

    def _begun(self, corpus: Corpus) -> InferenceResult:
        """Infer machines from a corpus, whatever may have been known before."""
        refines = corpus.steps > REFINE_ABOVE and self.options.strategy.refines
        if self.options.refine is not None or not corpus.in_memory:
            refines = self.options.refine is not False
        with ThreadPoolExecutor(1) as beside:  # learning leaves a core free
            if corpus.in_memory:
                beside.submit(lambda: corpus.digest)
            learner = self._learner(corpus, _outputs(self.options, corpus.alphabets))
            chosen = corpus.sample(SAMPLE_STEPS) if refines else corpus.all
            try:
                found = learner.learn(corpus.fetch(chosen), chosen)
                return self._refined(corpus, learner, chosen, found)
            except ContradictoryTraces:
                if self.options.noise == "none":
                    raise
            return self._most_likely(corpus)

    def _most_likely(self, corpus: Corpus) -> InferenceResult:
        """Infer the machines that explain traces best but for noise, and replay all traces."""
        outputs = _outputs(self.options, corpus.alphabets)
        learner = replace(self._learner(corpus, outputs), noisy=True)
        chosen = corpus.all if corpus.in_memory else corpus.sample(NOISY_STEPS)
        found = learner.learn(corpus.fetch(chosen), chosen)
        shown = self._replay(corpus, found.machines)
        refinement = Refinement(1, len(chosen), found.steps, corpus.traces, noisy=True)
        return self._result(Standing(corpus, chosen, found, shown), learner, refinement)

    def extended(self, before: Standing, traces: TraceSet) -> InferenceResult:
        """Go on from where an inference ended, with more traces."""
        corpus = before.corpus.extended(traces)
        if before.found.log_evidence:
            return self._most_likely(corpus)
        outputs = [one.predicts for one in before.found.machines.values()]
        if self.options.outputs is None:
            wanted = _outputs(self.options, corpus.alphabets)
            if wanted != [name for name in outputs if name != TERMINATED or name in wanted]:
                return self._begun(corpus)  # more traces may show that there is more to predict
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
            if corpus.in_memory and not shown.consistent:
                # Which traces show a conflict matters only if there is one.
                shown = self._replay(corpus, found.machines, shortest=True)
            more = counterexamples(shown, chosen, FIRST_COUNTEREXAMPLES << rounds)
            if len(more):
                # Machines that fail may need more traces of any kind, too.
                others = corpus.sample(SAMPLE_STEPS << rounds)
                chosen = np.union1d(np.union1d(chosen, more), others)
                found = learner.learn(corpus.fetch(chosen), chosen)
                rounds += 1
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
        if not shown.consistent:
            raise AssertionError("the machines do not explain what they were learned from")
        refinement = Refinement(rounds, len(chosen), found.steps, corpus.traces)
        return self._result(Standing(corpus, chosen, found, shown), learner, refinement)

    def _learner(self, corpus: Corpus, outputs: list[str]) -> Learner:
        return Learner(
            self.options,
            outputs,
            self._named_trivial(corpus),
            corpus.place,
            self.time_left,
            self.progress,
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
            progress=self._reporter(REPLAYING, len(corpus.shards)),
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
        warnings = warnings_of(end.shown, corpus, merged=self.options.strategy.merges)
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

    def _reporter(self, doing: str, shards: int) -> Callable[[int], None] | None:
        """Return what tells the listener, shard by shard, how far it is; and stops in time."""
        if shards == 1:
            return None

        def report(done: int) -> None:
            if self.progress is not None:
                self.progress(doing, Progress(0, 0, done, shards))
            if self.time_left() == NO_TIME:
                raise TimeLimitReached(
                    f"time ran out while {doing} traces, with {done} of {shards} files done: "
                    f"raise the time limit"
                )

        return report

    def time_left(self) -> float | None:
        """Return how many seconds are left; None where there is no limit."""
        limit = self.options.time_limit
        if limit is None or not limit > 0:
            return limit  # merge() refuses what is not above 0
        return max(limit - (time.perf_counter() - self.started), NO_TIME)


def _outputs(options: Options, known_of: TraceSet | Alphabets) -> list[str]:
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
    each = share * np.log2(share) + (1 - share) * np.log2(1 - share)
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
