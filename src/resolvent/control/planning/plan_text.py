"""A plan → what is said of it: in lines, and in a notebook with what to do first."""

from typing import TYPE_CHECKING

import numpy as np

from resolvent import notebook
from resolvent.control.planning.situations import by_name
from resolvent.traces.symbols import symbol_text
from resolvent.traces.thumbnails import shown_together
from resolvent.wording import amount

if TYPE_CHECKING:
    from resolvent.control.planning.plans import Plan


def text_of(plan: "Plan") -> str:
    """Say what the plan is worth and what is not known, a line for each fact."""
    return "\n".join(f"{name:<12} {text}" for name, text in _facts(plan))


def html_of(plan: "Plan") -> str:
    """Show the figures in a notebook, and what to do in the first situations."""
    model = plan.model
    situations = [model.named(number) for number in range(min(len(model), notebook.MOST_ROWS))]
    pictures = shown_together(observation for observation, *_ in situations)
    rows = (
        [
            notebook.Pictured(symbol_text(situations[number][0]), pictures[number]),
            *situations[number][1:],
            symbol_text(model.actions[int(plan.policy[number])]),
            f"{plan.pessimistic[number]:.4g}",
            f"{plan.optimistic[number]:.4g}",
        ]
        for number in range(len(situations))
    )
    header = [*by_name(model.named(0)), "action", "at least", "at most"]
    if plan.expected is not None:
        header.append("expected")
        worth = plan.expected
        rows = ([*row, f"{worth[number]:.4g}"] for number, row in enumerate(rows))
    return notebook.panel(
        "a plan", notebook.figures(_facts(plan)), notebook.table(header, rows, len(model))
    )


def _facts(plan: "Plan") -> list[tuple[str, str]]:
    """Say what the plan is worth and what is not known, as names and texts."""
    model = plan.model
    discount = "undiscounted" if plan.gamma == 1 else f"discounted by {plan.gamma:g}"
    expected = "" if plan.expected is None else " expected"
    told = [
        ("value", f"{plan.value:.4g}{expected} from the starts, {discount}"),
        ("bound", _bound_text(plan)),
    ]
    if plan.assumes_rewards:
        seen = " to ".join(f"{one:g}" for one in dict.fromkeys(model.reward_range))
        told.append(("", f"this rests on rewards that were never seen: only {seen} was"))
    told += [
        ("situations", f"{len(model):,}, and {amount(len(model.actions), 'action')}"),
        ("unknown", f"{model.unknown:,} of {model.known.size:,} steps"),
    ]
    if model.chances is not None:
        told.append(("chance", model.chances.text()))
    sometimes = int((model.sometimes_ends & ~model.known).sum())
    if sometimes:
        told.append(("", f"{sometimes:,} of these sometimes end the episode and sometimes do not"))
    if plan.advice is not None:
        told.append(("try next", plan.advice))
    return told


def _bound_text(plan: "Plan") -> str:
    if plan.vacuous is not None and plan.largest_gap == 0:
        return f"none: {plan.vacuous}"
    if plan.confidence is not None:
        return _bound_with_confidence(plan)
    bound = "optimal: no way to act is worth more"
    if not plan.is_optimal:
        bound = f"at most {plan.bound:.4g} below the best"
        if len(plan.model.starts) > 1:
            bound += f" on average, {plan.largest_gap:.4g} from any one start"
    if plan.model.unknown:
        bound += ", if pay stays within {:g} to {:g}".format(*plan.reward_range)
    return bound


def _bound_with_confidence(plan: "Plan") -> str:
    least, most = plan.model.at_starts(plan.pessimistic), plan.model.at_starts(plan.optimistic)
    sure = f"with {100 * (plan.confidence or 0):.6g}% confidence"
    if not np.isfinite(plan.bound):
        known = [f"at least {least:.4g}"] * bool(np.isfinite(least))
        known += [f"at most {most:.4g}"] * bool(np.isfinite(most))
        told = f"; {sure} it is worth {' and '.join(known)}" if known else ""
        return f"none, since nothing is discounted and anything may come{told}"
    return (
        f"within {plan.bound:.4g} of the best {sure}: worth at least {least:.4g}, "
        f"and nothing more than {most:.4g}, if pay stays within "
        "{:g} to {:g}".format(*plan.reward_range)
    )
