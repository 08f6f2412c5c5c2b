"""The whole inference: traces → a Transition Machine, a Reward Machine, or others.

The paper's algorithm itself is in `learning`; `infer` gives it all traces, or
few at first and then those that the machines cannot explain.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from resolvent.arithmetic import log2
from resolvent.errors import ContradictoryTraces, ModelError, OptionError, TraceError
from resolvent.events import find_events
from resolvent.hypotheses import extended, inferred
from resolvent.limits import telling_of_memory
from resolvent.machines import Machines
from resolvent.merging import STRATEGIES, Strategy
from resolvent.noise import FEWEST_VALUES, Noise, find_reward_levels
from resolvent.options import Options
from resolvent.progress import Listener, Progress
from resolvent.replay import Corpus, states_at_steps, whole
from resolvent.result import InferenceResult, machines_in
from resolvent.running import Run, outputs_of
from resolvent.samples import LabelTiming
from resolvent.senses import Discretise, RewardLevels, Senses, auto_discretise
from resolvent.traces import Label, Trace, TraceSet
from resolvent.traces.column_names import (
    ACTION,
    ALWAYS_READ,
    REWARD,
)
from resolvent.traces.given import as_trace_set, as_traces
from resolvent.traces.labelling import GIVEN, Labelling
from resolvent.traces.shards import Shards, ShardsInMemory, TraceFolder, look_at
from resolvent.trust import Evidence, are_known, gather
from resolvent.wording import amount
from resolvent.workers import Workers, at_work

EVERYTHING = Labelling("action+observation")
"""Labels that tell all that was seen and done."""

FINDING_EVENTS = "finding events"
"""What it is told while labels are looked for."""


def infer(
    traces: TraceSet | TraceFolder | Iterable[Trace] | str | Path,
    *,
    outputs: Iterable[str] | None = None,
    labels: str | Labelling = "given",
    discretise: Discretise | Literal["auto"] | None = None,
    noise: Noise | Literal["none", "auto"] = "auto",
    strategy: str | Strategy = "auto",
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
    on: str | Workers = "threads",
    resume: str | Path | None = None,
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
        noise: What may be noisy. By default, "auto", nothing as long as machines without noise
            explain all traces; otherwise the most likely machines are found, whose states
            answer with a distribution (`machine.distribution`). `result.noise` says how much
            noise of which kind there is, and `result.warnings` why it was taken to be there;
            traces that do not fit at all are named in `result.broken`. "none": a contradiction
            is an error. A `Noise` says what is noisy; all else is taken to be exact.
        strategy: How machines are found. "auto" tries several ways, the cheap ones first and
            others only where these leave doubt, and takes the machine with the shortest
            description: `result.tried` says what was tried. "edsm" merges by most evidence,
            "rpni" in the paper's order. "search" looks for the smallest machine it can find,
            and needs far fewer traces. "exact" does so too, and proves what it can:
            see `result.certificates`; needs the extra `exact`. Or a `Strategy` of
            your own. Machines with noise are the most likely ones met, whatever the strategy.
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
        seed: Of the search, for "auto", "search" and "exact".
        effort: How much is tried at most before the best found so far is taken: 2 is twice
            as much. It is counted in work, so that the same traces give the same machines.
        on: Who goes through the pieces of a scanned folder: "threads" of this process,
            "processes" of this machine, or "ray", a cluster: that of `ray.init`, of
            "ray:ADDRESS" or of `RAY_ADDRESS`, or else a Ray of this machine alone, which takes
            seconds to begin. Or `Workers` of your own. The machines are the same. Needs the extra
            `ray`.
        resume: A folder, or an address such as "s3://bucket/runs/7", in which what was found in
            each piece of a scanned folder is kept. If the inference is interrupted, however that
            may be, and run again, it goes on from there, with the same result. With `on="ray"`
            all nodes have to reach it. Files that have changed are read again. It may be removed
            at any time; traces in memory need none.
        time_limit: Seconds for the whole inference. After that the best machines so far are
            replayed on all traces once more, and returned: `result.unfinished` says which are
            not finished, and what share of the answers they get wrong. Only reading files that
            takes longer is an error.
        progress: Called now and then with the machine's name and how far it is.

    Raises:
        ContradictoryTraces: when no deterministic machine over these labels can explain the
            traces, and noise is not allowed for; or when another option explains them all
            without noise, which the error names.

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
        on=on,
        resume=resume,  # type: ignore[arg-type]
    )
    named = (name for name in options.outputs or () if name not in ALWAYS_READ)
    return infer_with(options, as_traces(traces, named), progress)


def infer_with(
    options: Options,
    traces: TraceSet | TraceFolder,
    progress: Listener | None = None,
    rewards: RewardLevels | None = None,
) -> InferenceResult:
    """Infer machines as `infer` does, with options that are made already.

    `rewards` are levels of rewards that are known already.
    """
    with telling_of_memory("machines were inferred"), at_work(options.on):
        return _inferred(options, traces, progress, rewards)


def _inferred(
    options: Options,
    traces: TraceSet | TraceFolder,
    progress: Listener | None,
    rewards: RewardLevels | None,
) -> InferenceResult:
    if isinstance(traces, TraceSet) and len(traces) == 0:
        raise TraceError("there are no traces to infer from: collect or read at least one")
    if isinstance(traces, TraceFolder) and options.refine is False:
        raise OptionError("a scanned folder is always refined: read it whole with read_traces")
    started = time.perf_counter()
    shards: Shards = ShardsInMemory([traces]) if isinstance(traces, TraceSet) else traces
    numbers = _fitted(options, shards)
    if options.labels == "auto":
        senses = Senses(GIVEN, numbers)
    else:
        senses = Senses(_following_inputs(options.labels, numbers, shards), numbers)
    senses = replace(senses, rewards=rewards or _reward_levels(options, senses, shards))
    if options.labels == "auto":
        return _with_events(options, senses.on_shards(shards), progress, senses)
    run = Run(options, progress, senses, started)
    result = inferred(run, run.corpus_of(senses.on_shards(shards)))
    if senses.rewards is None or rewards is not None:
        return result
    sharper = _reward_levels(options, senses, shards, result.machines)
    if sharper in (None, senses.rewards):
        return result
    senses = replace(senses, rewards=sharper)
    run = Run(options, progress, senses, started)
    return inferred(run, run.corpus_of(senses.on_shards(shards)))


def _reward_levels(
    options: Options, senses: Senses, shards: Shards, known: Machines | None = None
) -> RewardLevels | None:
    """Return what rewards vary around, if they do; those of a folder by its first file.

    Machines that are known already tell which steps pay the same but for noise.
    """
    noise, timing = options.noise, options.timing
    stated = isinstance(noise, Noise) and noise.rewards == "gaussian"
    named = options.outputs is None or REWARD in options.outputs
    if stated and options.reward_digits is not None:
        raise OptionError(
            "reward_digits rounds rewards, and noise takes them for the values that they vary "
            "around: leave out one"
        )
    if not (noise == "auto" or stated) or not named or options.reward_digits is not None:
        return None
    traces = replace(senses, rewards=None).on(_first_traces(shards))
    memory = None
    if known is not None:
        memory = np.zeros(traces.steps, np.int64)
        for kind, states in states_at_steps(known, traces).items():
            memory = memory * (known[kind].states + 1) + states + 1
    if options.labels == "auto":  # the same past, whatever may turn out to be an event
        traces, timing = EVERYTHING.on(traces), LabelTiming.CURRENT_WITH_INITIAL
    found = find_reward_levels(traces, timing, stated=stated, memory=memory)
    if found is None and stated and known is None:
        raise _no_levels(traces)
    return found


def _no_levels(traces: TraceSet) -> OptionError:
    """Return the error for rewards that do not vary as the user says."""
    why = "the traces have no rewards: leave it out"
    if REWARD in traces.columns:
        several = amount(len(traces.rewards), "different reward")
        why = f"{several} at {amount(traces.steps, 'step')}"
        if len(traces.rewards) < FEWEST_VALUES:
            why += " are compared as they are: say rewards='flipped', or leave it out"
        else:
            why += " do not vary around few values: leave it out, or round them with reward_digits"
    return OptionError(f"Noise: rewards is 'gaussian', but {why}")


def _following_inputs(
    labelling: Labelling, numbers: Discretise | None, shards: Shards
) -> Labelling:
    """Return labels made of actions where those given say just that, as a log's inputs do.

    Otherwise they would name numbers that the actions, put into intervals, no longer have.
    """
    if labelling.is_given and numbers is not None and numbers.of == ACTION:
        traces = _first_traces(shards)
        of_actions = Labelling("action")
        if of_actions.on(traces) == traces:
            return of_actions
    return labelling


def _with_events(
    options: Options, shards: Shards, progress: Listener | None, seen: Senses
) -> InferenceResult:
    """Infer machines with the labels there are, if these will do, or else with events found.

    Events that explain all traces are better than noise, so noise comes last.
    """
    started = time.perf_counter()
    if options.noise != "auto":
        return _with_events_as(options, shards, progress, seen, started)
    with suppress(ContradictoryTraces):
        quiet = replace(options, noise="none")
        found = _with_events_as(quiet, shards, progress, seen, started)
        asked = replace(found.options, noise=options.noise)
        made = found.machines.provenance
        if made is not None:
            made = msgspec.structs.replace(made, options=asked.as_dict())
        return replace(found, options=asked, machines=found.machines.replacing(provenance=made))
    return _with_events_as(options, shards, progress, seen, started)


def _with_events_as(
    options: Options,
    shards: Shards,
    progress: Listener | None,
    seen: Senses,
    started: float,
) -> InferenceResult:
    def infer_from(
        shards: Shards,
        labelling: Labelling,
        timing: LabelTiming,
        strategy: Strategy = options.strategy,
    ) -> InferenceResult:
        chosen = replace(options, timing=timing, strategy=strategy)
        run = Run(chosen, progress, replace(seen, labelling=labelling), started)
        return inferred(run, run.corpus_of(shards))

    traces = _first_traces(shards)
    one_each = len(traces.labels) >= len(traces.observations) > 1  # as labels made of them are
    if len(traces.labels) > 1 and not one_each:
        for timing in dict.fromkeys((options.timing, LabelTiming.CURRENT_WITH_INITIAL)):
            with suppress(ContradictoryTraces):
                return infer_from(shards, GIVEN, timing)
    if progress is not None:
        progress(FINDING_EVENTS, Progress(0, 0, 0, 0))
    found = find_events(
        traces,
        outputs_of(options, traces),
        lambda labelled, timing: infer_from(ShardsInMemory([labelled]), GIVEN, timing),
        length=_length,
        seed=options.seed,
        effort=options.effort,
        time_left=Run(options, None, Senses(), started).time_left,
    )
    senses = replace(seen, labelling=found.labelling)
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


def _first_traces(shards: Shards) -> TraceSet:
    """Return the traces of the first piece that has any; others may be damaged, and left out."""
    for number in range(len(shards)):
        traces, _ = look_at(shards, number)
        if len(traces):
            break
    return traces


def _fitted(options: Options, shards: Shards) -> Discretise | None:
    """Return intervals for the numbers in observations; those of a folder by its first file."""
    asked = options.discretise
    if asked is None or (asked != "auto" and asked.is_fitted):
        return asked
    traces = _first_traces(shards)
    if asked == "auto":
        return auto_discretise(traces, outputs_of(options, traces))
    return asked.fit(traces)


def update(
    result: InferenceResult, traces: TraceSet, progress: Listener | None = None
) -> InferenceResult:
    """Take more traces into a result: replay them, and repair the machines where they fail."""
    with telling_of_memory("machines were updated"), at_work(result.options.on):
        return _updated(result, traces, progress)


def _updated(
    result: InferenceResult, traces: TraceSet, progress: Listener | None
) -> InferenceResult:
    traces = as_trace_set(traces)
    if len(traces) == 0:
        raise TraceError("there are no traces to update with: collect or read at least one")
    senses = result.machines.senses
    run, more = Run(result.options, progress, senses), senses.on(traces)
    if result.options.labels != "auto" or not result.standing.corpus.in_memory:
        return extended(run, result, more)
    quiet = Run(replace(result.options, noise="none"), progress, senses)
    try:
        return extended(run if result.is_noisy else quiet, result, more)
    except ContradictoryTraces:  # there are other events than those found
        together = result.standing.corpus.extended(more).together()
        options = replace(result.options, discretise=senses.discretise)
        return infer_with(options, together, progress, senses.rewards)


def evidence(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceFolder | Corpus,
    *,
    delta: float = 0.05,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> Evidence:
    """Gather what traces say about machines, and what they leave open.

    For machines inferred from these very traces, others are inferred from four fifths
    of them, in the same way, and tested on the rest; that needs machines which say how they
    were inferred, as those in a file do. Traces that are new to the machines test these.

    A scanned place is gone through twice, or once with the result of its own inference, by
    those that `on` names, as for `infer`. What has to look at single traces is then about a
    million steps of it, and says so: label histories, how sure moves are under noise, and what
    is held out. All else counts all traces.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> gathered = evidence(rs.infer(traces).machines, traces)
    >>> print(gathered["transition"].separations[0])
    states 0 and 1: 1 question asked 355 times, such as (corridor, up): corridor (trace 0, step 0) \
against cyanroom (trace 22, step 3)
    """
    strategy, known = None, None
    if isinstance(machines, InferenceResult):
        strategy, known = machines.options.strategy, machines.standing.corpus
    machines = machines_in(machines)
    given = traces if isinstance(traces, Corpus) else as_traces(traces)
    if isinstance(given, TraceSet) and len(given) == 0:
        raise ModelError("there are no traces to gather evidence from")
    with telling_of_memory("evidence was gathered"), at_work(on) as workers:
        if isinstance(given, Corpus):
            corpus = copy(given)
            corpus.workers = workers
        else:
            corpus = whole(machines, given, workers, known=known, progress=progress)
        again = _as_before(machines, strategy) if are_known(machines, corpus) else None
        infer_again = None if again is None else partial(_machines_with, again)
        return gather(machines, corpus, infer=infer_again, delta=delta, progress=progress)


def _as_before(machines: Machines, strategy: Strategy | None) -> Options | None:
    """Return the options that machines were inferred with, if they say so.

    What the machines made of raw steps stays as it is: only they are held to the test.
    """
    made = machines.provenance
    if made is None:
        return None
    named = made.options.get("strategy")
    # Of a strategy that is not built in, a file knows the name alone.
    if strategy is None and isinstance(named, str) and named not in STRATEGIES:
        return None
    as_seen = {**made.options, "labels": "given", "discretise": None}
    if not any(machine.is_noisy for machine in machines.values()):
        as_seen["noise"] = "none"  # fewer traces must not make noise of what is exact
    elif machines.senses.rewards is not None:  # what is left of the noise are flips
        as_seen["noise"] = "auto"
    return Options.from_dict(as_seen, strategy)


def _machines_with(options: Options, traces: TraceSet) -> Machines:
    return infer_with(options, traces).machines
