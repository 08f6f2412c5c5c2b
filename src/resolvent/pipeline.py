"""The whole inference: traces → a Transition Machine and a Reward Machine.

The paper's algorithm itself is in `learning`; `infer` gives it all traces, or
few at first and then those that the machines cannot explain.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent.errors import ModelError, OptionError, TimeLimitReached, TraceError
from resolvent.evidence import Evidence, gather
from resolvent.exact import Certificate
from resolvent.learning import NO_TIME, Learned, Learner, ProgressListener
from resolvent.machines import Machine, MachinePair, Provenance, TransitionMachine
from resolvent.merging import STRATEGIES, Progress, Strategy, engine_for, strategy_named
from resolvent.reduction import trivial_codes
from resolvent.refinement import (
    Corpus,
    PairSightings,
    compacted,
    counterexamples,
    observed_termination,
    rebuilt,
    replay,
)
from resolvent.result import InferenceResult, Options, Refinement
from resolvent.samples import LabelTiming, rounded_rewards
from resolvent.traces import Label, TraceSet, Vocabulary
from resolvent.traces.shards import JoinedShards, Shards, ShardsInMemory, TraceFolder
from resolvent.wording import visible

REFINE_ABOVE = 500_000
"""Steps above which `infer` refines, unless it is told whether to."""

SAMPLE_STEPS = 50_000
"""Steps that refinement learns from at first."""

FIRST_COUNTEREXAMPLES = 16
"""Half of the traces that the first round of refinement adds; each later one adds twice as many."""


READING, REPLAYING = "reading", "replaying"
"""What `progress` is told instead of a machine's name while shards are gone through."""


def infer(
    traces: TraceSet | TraceFolder,
    *,
    strategy: str | Strategy = "edsm",
    timing: LabelTiming | str = LabelTiming.CURRENT,
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
    progress: ProgressListener | None = None,
) -> InferenceResult:
    """Infer the two machines that explain the traces.

    Args:
        traces: What the agent saw; or a folder of it (`scan_traces`) that need
            not fit into memory.
        strategy: How machines are found. "edsm" merges by most evidence, "rpni" in
            the paper's order. "search" looks for the smallest machine it can find,
            and needs far fewer traces. "exact" does so too, and proves what it can:
            see `result.certificates`; needs the extra `exact`. Or a `Strategy` of
            your own.
        timing: Which labels are read before a step is answered.
        trivial: Labels known to change no state, besides "no event"; as sets of
            propositions or as the texts they print as. "auto" judges by the traces
            which labels a machine can do without; `result.trivial` says why.
        supplement: Pair observations with Transition Machine states for the
            Reward Machine.
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
    """
    if isinstance(traces, TraceSet) and len(traces) == 0:
        raise TraceError("there are no traces to infer from: collect or read at least one")
    if trivial != "auto":
        if isinstance(trivial, str):
            raise OptionError(
                f"trivial labels come as a list: write ['{trivial}'], not '{trivial}'"
            )
        trivial = tuple(trivial)
    if trivial and trivial != "auto" and not remove_trivial:
        raise OptionError("trivial labels are named, but remove_trivial is off: leave out one")
    chosen = strategy_named(strategy)
    if isinstance(traces, TraceFolder) and refine is False:
        raise OptionError("a scanned folder is always refined: read it whole with read_traces")
    options = Options(
        chosen,
        _timing(timing),
        trivial,
        supplement,
        remove_redundant,
        remove_trivial,
        reward_digits,
        engine_for(chosen, engine),
        time_limit,
        refine,
        seed,
        effort,
    )
    shards = ShardsInMemory([traces]) if isinstance(traces, TraceSet) else traces
    return _Run(shards, options, progress).result()


class _StoredOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of `infer` that a file of machines holds."""

    strategy: str
    timing: str
    trivial: list[str] | Literal["auto"]
    supplement: bool
    remove_redundant: bool
    remove_trivial: bool
    reward_digits: int | None
    seed: int = 0
    effort: float = 1.0


def inferring_like(
    pair: MachinePair,
    progress: ProgressListener | None = None,
    strategy: Strategy | None = None,
) -> Callable[[TraceSet], MachinePair]:
    """Return a function that infers machines from traces as this pair was inferred from its own.

    `strategy` is the one they were inferred with, where that is not built in: they
    know only its name.

    Raises:
        ModelError: when the pair does not say how it was inferred, or not so
            that it could be done again.
    """
    if pair.provenance is None:
        raise ModelError("the machines do not say how they were inferred")
    try:
        options = msgspec.convert(pair.provenance.options, _StoredOptions)
    except msgspec.ValidationError as error:
        raise ModelError(
            f"the machines were inferred with options unknown here: {error}"
        ) from error
    if strategy is None and options.strategy not in STRATEGIES:
        raise ModelError(
            f"the machines were inferred with strategy '{visible(options.strategy)}', which is not "
            f"built in: infer them again with it, or with one of {', '.join(STRATEGIES)}"
        )
    again = {**msgspec.structs.asdict(options), "strategy": strategy or options.strategy}

    def infer_again(traces: TraceSet) -> MachinePair:
        return infer(traces, progress=progress, **again).machines

    return infer_again


@dataclass(frozen=True)
class _Start:
    """Where an inference ended, for another to go on from: traces learned from, and machines."""

    chosen: NDArray[np.int64]
    learned: Learned


class _Run:
    """One inference under way: all traces, its clock, what it counted."""

    def __init__(self, shards: Shards, options: Options, progress: ProgressListener | None) -> None:
        self.started = time.perf_counter()
        self.options = options
        self.progress = progress
        self.replaying = 0.0
        self.corpus = Corpus(shards, self._reporter(READING, shards))
        rewards = rounded_rewards(self.corpus.alphabets.rewards, options.reward_digits)
        self.rewards: Vocabulary[float] = Vocabulary(sorted(set(rewards)))
        self.reward_codes = np.array([self.rewards.code(reward) for reward in rewards], np.int32)
        self.trivial = self._named_trivial()
        self.refines = self.corpus.steps > REFINE_ABOVE and options.strategy.refines
        if options.refine is not None or not self.corpus.in_memory:
            self.refines = options.refine is not False

    def result(self, start: "_Start | None" = None) -> InferenceResult:
        """Learn and replay in turn until the machines explain every trace."""
        with ThreadPoolExecutor(1) as beside:  # learning leaves a core free
            digest = beside.submit(lambda: self.corpus.digest) if self.corpus.in_memory else None
            learner = Learner(
                self.options, self.trivial, self.corpus.place, self._time_left, self.progress
            )
            if start is None:
                chosen = self.corpus.sample(SAMPLE_STEPS) if self.refines else self.corpus.all
                learned = self._learn(learner, chosen)
            else:
                chosen, learned = start.chosen, start.learned
                learner.recall(learned)
            rounds = 1
            while True:
                seen = self._replay(learned.machines)
                more = counterexamples(seen, chosen, FIRST_COUNTEREXAMPLES << rounds)
                if len(more):
                    # Machines that fail may need more traces of any kind, too.
                    others = self.corpus.sample(SAMPLE_STEPS << rounds)
                    chosen = np.union1d(np.union1d(chosen, more), others)
                    learned = self._learn(learner, chosen)
                    rounds += 1
                elif len(chosen) == self.corpus.traces:
                    break
                elif smaller := compacted(learned.machines.transition, seen.transition):
                    learned = self._learn(learner, chosen, smaller)
                elif fewer := compacted(learned.machines.reward, seen.reward):
                    learned = replace(learned, machines=replace(learned.machines, reward=fewer))
                else:
                    break
            if not seen.consistent:
                raise AssertionError("the machines do not explain what they were learned from")
            refinement = Refinement(rounds, len(chosen), learned.steps, self.corpus.traces)
            sha256 = digest.result() if digest else self.corpus.digest
            return self._result(_Start(chosen, learned), seen, refinement, sha256)

    def _learn(
        self,
        learner: Learner,
        chosen: NDArray[np.int64],
        transition: TransitionMachine | None = None,
    ) -> Learned:
        return learner.learn(self.corpus.fetch(chosen), chosen, transition)

    def _named_trivial(self) -> frozenset[Label] | None:
        """Return the labels that are trivial because the user says so; None if they are judged."""
        if not self.options.remove_trivial or self.options.trivial == "auto":
            return None
        labels = self.corpus.alphabets.labels
        return frozenset(labels[code] for code in trivial_codes(labels, self.options.trivial))

    def _replay(self, machines: MachinePair) -> PairSightings:
        started = time.perf_counter()
        codes = None if self.options.reward_digits is None else self.reward_codes
        report = self._reporter(REPLAYING, self.corpus.shards)
        trivial = self.trivial or frozenset()
        # Which traces show a conflict matters only if there is one; reading files takes longest.
        again = self.corpus.in_memory and len(self.corpus.shards) == 1
        seen = replay(machines, self.corpus, trivial, codes, report, shortest=not again)
        if again and not seen.consistent:
            seen = replay(machines, self.corpus, trivial, codes, report)
        self.replaying += time.perf_counter() - started
        return seen

    def _result(
        self, end: "_Start", seen: PairSightings, refinement: Refinement, sha256: str
    ) -> InferenceResult:
        corpus, alphabets, learned = self.corpus, self.corpus.alphabets, end.learned
        transition, reward = learned.machines.transition, learned.machines.reward
        if refinement.traces < corpus.traces:
            transition, reward = rebuilt(
                learned.machines,
                seen,
                alphabets,
                self.rewards,
                self.trivial or frozenset(),
                constants=self.options.remove_redundant,
            )
        pair = MachinePair(
            transition,
            reward,
            self.options.timing,
            observed_termination(seen, alphabets, transition.states),
            Provenance(
                version=version("resolvent"),
                traces=corpus.traces,
                steps=corpus.steps,
                traces_sha256=sha256,
                options=self.options.stored(),
            ),
        )
        statistics = {
            machine.kind: replace(
                learned.statistics[machine.kind],
                states=machine.states,
                constant_outputs=len(machine.constant_value),
                outputs_by_state=len(machine.output_value),
            )
            for machine in (transition, reward)
        }
        seconds = {name: one.seconds for name, one in statistics.items()}
        total = time.perf_counter() - self.started
        return InferenceResult(
            machines=pair,
            options=self.options,
            traces=corpus.traces,
            steps=corpus.steps,
            transition=statistics["transition"],
            reward=statistics["reward"],
            refinement=refinement,
            seconds={**seconds, "replay": self.replaying, "total": total},
            trivial=learned.verdicts,
            certificates=self._certificates(learned, pair, refinement),
            _histories=learned.histories,
            _automata=learned.automata,
            _updated=partial(self._updated, end),
            _gather=partial(self._evidence, pair),
            _traces=self._all_traces,
        )

    def _certificates(
        self, learned: Learned, pair: MachinePair, refinement: Refinement
    ) -> dict[str, Certificate[Machine]]:
        """Return what was proven; on some traces only, another machine may fit those alone."""
        if refinement.traces == self.corpus.traces:
            return learned.certificates
        return {
            name: replace(
                certificate,
                states=getattr(pair, name).states,
                unique=certificate.unique or None,
                alternative=None,
            )
            for name, certificate in learned.certificates.items()
        }

    def _evidence(self, pair: MachinePair) -> Evidence:
        return gather(
            pair, self._all_traces(), infer=inferring_like(pair, strategy=self.options.strategy)
        )

    def _all_traces(self) -> TraceSet:
        shards = self.corpus.shards
        if not isinstance(shards, ShardsInMemory):
            raise ModelError(
                "the traces were scanned, not read: gather evidence from some of their files, "
                "with resolvent check MACHINES FILE --evidence or resolvent report MACHINES FILE"
            )
        return shards.read(0) if len(shards) == 1 else TraceSet.concatenate(shards)

    def _updated(self, start: "_Start", traces: TraceSet) -> InferenceResult:
        """Go on from where an inference ended, with more traces."""
        if len(traces) == 0:
            raise TraceError("there are no traces to update with: collect or read at least one")
        before = self.corpus.shards
        shards: Shards = JoinedShards([before, ShardsInMemory([traces])])
        if isinstance(before, ShardsInMemory):
            shards = ShardsInMemory([*before.sets, traces])
        return _Run(shards, self.options, self.progress).result(start)

    def _reporter(self, doing: str, shards: Shards) -> Callable[[int], None] | None:
        """Return what tells the listener, shard by shard, how far it is; and stops in time."""
        if len(shards) == 1:
            return None

        def report(done: int) -> None:
            if self.progress is not None:
                self.progress(doing, Progress(0, 0, done, len(shards)))
            if self._time_left() == NO_TIME:
                raise TimeLimitReached(
                    f"time ran out while {doing} traces, with {done} of {len(shards)} files done: "
                    f"raise the time limit"
                )

        return report

    def _time_left(self) -> float | None:
        limit = self.options.time_limit
        if limit is None or not limit > 0:
            return limit  # merge() refuses what is not above 0
        return max(limit - (time.perf_counter() - self.started), NO_TIME)


def _timing(timing: LabelTiming | str) -> LabelTiming:
    try:
        return LabelTiming(timing)
    except ValueError:
        known = ", ".join(LabelTiming)
        raise OptionError(f"unknown timing '{timing}': choose one of {known}") from None
