"""The methods of the comparison, by name: ours, a peer, and those the paper compares with.

Each takes the same traces and returns an `Outcome`. All are given the number of states
of the task, but only the hidden Markov models use it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from resolvent.inference.infer import infer
from resolvent.paper import baselines
from resolvent.paper.baselines import Outcome
from resolvent.paper.baselines.outcome import Status
from resolvent.traces.trace_set import TraceSet


@dataclass(frozen=True)
class Method:
    """A method: its title in tables, its function, and its requirements."""

    title: str
    function: str
    options: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    extra: str | None = None


def _method(title: str, name: str, *needs: str, **options: Any) -> Method:
    extra = {"aalpy": "aalpy", "highspy": "baselines"}.get(needs[0]) if needs else None
    return Method(title, f"{__name__}:{name}", options, needs, extra)


OURS: Final = "rpni"
"""The paper's order of merging, which others are compared with."""

METHODS: Final[dict[str, Method]] = {
    OURS: _method("ours, rpni", "ours", strategy="rpni"),
    "edsm": _method("ours, edsm", "ours", strategy="edsm"),
    "aalpy": _method("AALpy, first fit", "aalpy", "aalpy", order="first-fit"),
    "aalpy-edsm": _method("AALpy, EDSM", "aalpy", "aalpy", order="edsm"),
    "hmm": _method("HMM, sparse", "hmm", engine="sparse"),
    "hmm-dense": _method("HMM, dense", "hmm", engine="dense"),
    "ilp-conflicts": _method("ILP, conflicts", "ilp", "highspy", mode="conflicts"),
    "ilp": _method("ILP, all traces", "ilp", "highspy", mode="all"),
    "lrm": _method("LRM, adapted", "lrm", first_counts=False),
    "lrm-published": _method("LRM, published", "lrm", first_counts=True),
}


def ours(traces: TraceSet, *, states: int, seed: int, time_limit: float, strategy: str) -> Outcome:
    """Infer the paper's two machines as `infer` does, with nothing else set but the strategy."""
    result = infer(
        traces,
        outputs=("observation", "reward"),
        strategy=strategy,
        noise="none",
        seed=seed,
        time_limit=time_limit,
    )
    status: Status = "time limit" if result.unfinished else "found"
    return Outcome(strategy, status, result.seconds["total"], result.machines.as_pair())


def aalpy(traces: TraceSet, *, states: int, seed: int, time_limit: float, order: Any) -> Outcome:
    """Infer both machines by AALpy."""
    return baselines.aalpy(traces, order=order, time_limit=time_limit)


def hmm(traces: TraceSet, *, states: int, seed: int, time_limit: float, engine: Any) -> Outcome:
    """Learn the task as a hidden Markov model, which counts the end as a state."""
    return baselines.hmm(traces, states=states + 1, seed=seed, engine=engine, time_limit=time_limit)


def ilp(traces: TraceSet, *, states: int, seed: int, time_limit: float, mode: Any) -> Outcome:
    """Find the smallest machine of the task by integer programming."""
    return baselines.ilp(traces, mode=mode, time_limit=time_limit)


def lrm(
    traces: TraceSet, *, states: int, seed: int, time_limit: float, first_counts: bool
) -> Outcome:
    """Search for a machine that predicts the next observation, by tabu search."""
    return baselines.lrm(traces, seed=seed, first_counts=first_counts, time_limit=time_limit)
