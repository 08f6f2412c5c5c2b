"""The Python engine as a whole: samples and a strategy in, an automaton out."""

from resolvent.errors import TimeLimitReached
from resolvent.merging.automaton import Automaton
from resolvent.merging.completion import completed
from resolvent.merging.judge import Judge
from resolvent.merging.prefix_tree import build_prefix_tree
from resolvent.merging.red_blue import RedBlue, summary
from resolvent.merging.rethinking import rethink
from resolvent.merging.strategy import Strategy
from resolvent.merging.watch import Watch, Watcher
from resolvent.samples import SampleSet


def merge_in_python(
    samples: SampleSet,
    strategy: Strategy,
    time_limit: float | None,
    listener: Watcher | None,
    most_states: int | None = None,
    most_work: int | None = None,
) -> Automaton:
    """Infer an automaton from samples; the `Engine` written to be read. It counts no work."""
    watch = Watch(time_limit, listener)
    if strategy.rethinks:
        return rethink(samples, strategy.horizon, watch, most_states)
    tree = build_prefix_tree(samples)
    judge = Judge(strategy, samples, tree)
    search = RedBlue(tree, watch, judge.fits if judge.is_picky else None)
    try:
        search.run(judge.order(), most_states)
    except TimeLimitReached:
        return completed(samples, search.red, search.settled(), search.events, search.attempts)
    return summary(search)
