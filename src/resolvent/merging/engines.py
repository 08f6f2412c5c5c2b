"""The two engines behind one signature, and the door to the compiled one."""

from typing import Protocol

from resolvent import _core
from resolvent.errors import OptionError
from resolvent.merging.automaton import Automaton, Contradiction, Event
from resolvent.merging.orders import ORDERS
from resolvent.merging.red_blue import merge_in_python
from resolvent.merging.watch import Listener, Progress, out_of_time
from resolvent.samples import SampleSet


class Engine(Protocol):
    """Infers an automaton from samples.

    Raises:
        Contradiction: when no machine can explain the samples.
        TimeLimitReached: when the search takes longer than allowed.
    """

    def __call__(
        self, samples: SampleSet, order: str, time_limit: float | None, listener: Listener | None
    ) -> Automaton:
        """Merge states in the named order."""


def merge_natively(
    samples: SampleSet, order: str, time_limit: float | None, listener: Listener | None
) -> Automaton:
    """Infer an automaton from samples; the `Engine` built for speed."""
    tree = samples.histories.tree
    found = _core.learn(
        tree,
        samples.alpha,
        samples.output,
        order=order,
        time_limit=time_limit or 0.0,
        progress=None if listener is None else lambda *numbers: listener(Progress(*numbers)),
    )
    if "contradiction" in found:
        raise Contradiction(*found["contradiction"])
    if "time_limit" in found:
        raise out_of_time(Progress(*found["time_limit"]))
    events = zip(
        *(found.pop(f"event_{name}").tolist() for name in Event._fields),
        strict=True,
    )
    return Automaton(
        events=tuple(
            Event(None if red < 0 else red, blue, score, folded)
            for red, blue, score, folded in events
        ),
        tree_nodes=len(tree),
        **found,
    )


ENGINES: dict[str, Engine] = {"native": merge_natively, "python": merge_in_python}
"""The engines by name; the first is the default."""


def merge(
    samples: SampleSet,
    *,
    order: str = "edsm",
    engine: str = "native",
    time_limit: float | None = None,
    listener: Listener | None = None,
) -> Automaton:
    """Infer an automaton from samples with the named engine and order."""
    if order not in ORDERS:
        raise OptionError(f"unknown strategy '{order}': choose one of {', '.join(ORDERS)}")
    if engine not in ENGINES:
        raise OptionError(f"unknown engine '{engine}': choose one of {', '.join(ENGINES)}")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"the time limit is {time_limit:g} s: it must be above 0")
    return ENGINES[engine](samples, order, time_limit, listener)


def find_contradiction(samples: SampleSet) -> Contradiction | None:
    """Return the first contradiction among the samples, or None when a machine can explain them."""
    rows = _core.find_contradiction(samples.histories.tree, samples.alpha, samples.output)
    return None if rows is None else Contradiction(*rows)
