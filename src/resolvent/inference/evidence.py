"""Collect the evidence of traces for machines, with a held-out test that infers them again."""

from copy import copy
from functools import partial

from resolvent._util.parallel import Listener, Workers, get_executor
from resolvent._util.validation import explain_memory_errors
from resolvent.errors import ModelError
from resolvent.evaluation.evidence import Evidence, are_training_traces, collect_evidence
from resolvent.inference.infer import infer_with
from resolvent.inference.options import InferenceOptions
from resolvent.inference.result import InferenceResult, machines_of_result
from resolvent.inference.strategy import STRATEGIES, Strategy
from resolvent.machines import Machines
from resolvent.replay import Corpus, scan_corpus
from resolvent.traces import TraceSet
from resolvent.traces.io.formats import as_traces
from resolvent.traces.source import TraceDataset


def evidence(
    machines: Machines | InferenceResult,
    traces: TraceSet | TraceDataset | Corpus,
    *,
    delta: float = 0.05,
    on: str | Workers = "threads",
    progress: Listener | None = None,
) -> Evidence:
    """Collect the support of traces for machines, and its gaps.

    If the machines were inferred from these traces, machines are inferred from four fifths of them
    with the same options and tested on the rest; this needs machines that store their options, as
    those in a file do. Traces that are new to the machines test these directly.

    A scanned folder is read twice, or once with the result of its inference, by the workers that
    `on` names, as for `infer`. Label sequences, the certainty of transitions under noise and the
    held-out test are then computed from a sample of about a million steps; the report says so.

    >>> import gymnasium as gym, resolvent as rs
    >>> traces = rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    >>> gathered = evidence(rs.infer(traces).machines, traces)
    >>> print(gathered["transition"].separations[0])
    states 0 and 1: 1 query observed 355 times, such as (corridor, up): corridor (trace 0, step 0) \
against cyanroom (trace 22, step 3)
    """
    strategy, scanned = None, None
    if isinstance(machines, InferenceResult):
        strategy, scanned = machines.options.strategy, machines.inference_state.corpus
    machines = machines_of_result(machines)
    source = traces if isinstance(traces, Corpus) else as_traces(traces)
    if isinstance(source, TraceSet) and len(source) == 0:
        raise ModelError("there are no traces to collect evidence from")
    with explain_memory_errors("evidence was gathered"), get_executor(on) as workers:
        if isinstance(source, Corpus):
            corpus = copy(source)
            corpus.workers, corpus.cache = workers, None
        else:
            corpus = scan_corpus(machines, source, workers, known=scanned, progress=progress)
        options = (
            _options_again(machines, strategy) if are_training_traces(machines, corpus) else None
        )
        infer_again = None if options is None else partial(_machines_with, options)
        return collect_evidence(machines, corpus, infer=infer_again, delta=delta, progress=progress)


def _options_again(machines: Machines, strategy: Strategy | None) -> InferenceOptions | None:
    """Return the options that machines were inferred with, if they store them.

    The preprocessing of raw steps stays as it is: only the machines are tested.
    """
    provenance = machines.provenance
    if provenance is None:
        return None
    named = provenance.options.get("strategy")
    # Of a strategy that is not built in, a file holds the name alone.
    if strategy is None and isinstance(named, str) and named not in STRATEGIES:
        return None
    stored = {**provenance.options, "labels": "given", "discretize": None}
    if not any(machine.is_noisy for machine in machines.values()):
        stored["noise"] = "none"  # fewer traces must not make exact outputs noisy
    elif machines.preprocessor.rewards is not None:  # the rest of the noise are wrong levels
        stored["noise"] = "auto"
    return InferenceOptions.from_dict(stored, strategy)


def _machines_with(options: InferenceOptions, traces: TraceSet) -> Machines:
    return infer_with(options, traces).machines
