"""Trace sets, plans and Q-tables → HTML for notebooks, with the pictures in observations."""

from typing import TYPE_CHECKING, Any

import numpy as np

from resolvent._util import html
from resolvent._util.text import amount
from resolvent.machines.augmented_state import by_name
from resolvent.traces.symbols import label_text, symbol_text
from resolvent.viz.thumbnails import thumbnails_of_symbols

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan
    from resolvent.rl.q_table import QTable
    from resolvent.traces.trace_set import TraceSet

_MOST_TRACES = 2  # number of long traces that share the rows of a view
_MOST_COLUMNS = 3  # maximum number of step columns in a view
_LATEST_EPISODES = 100  # number of last episodes whose mean return is shown


def html_of_traces(traces: "TraceSet") -> str:
    """Return the sizes, and the first steps of the first traces."""
    names = [*traces.columns][:_MOST_COLUMNS]
    header = ["trace", "step", "observation", "label", "action", *names]
    count = html.MAX_ROWS // min(_MOST_TRACES, max(len(traces), 1))
    lengths: list[Any] = np.diff(traces.offsets[: html.MAX_ROWS + 1]).tolist()
    steps = [
        (number, step, int(traces.offsets[number]) + step)
        for number, length in enumerate(lengths)
        for step in range(min(length, count))
    ][: html.MAX_ROWS]
    observations = [
        traces.observations[traces.observation_codes[row + number]] for number, _, row in steps
    ]
    columns = [(traces.actions, traces.action_codes), *(traces.columns[name] for name in names)]
    rows = (
        [
            number,
            step,
            html.Pictured(symbol_text(observation), pictures),
            label_text(traces.labels[traces.label_codes[row + number]]),
            *(symbol_text(values[codes[row]]) for values, codes in columns),
        ]
        for (number, step, row), observation, pictures in zip(
            steps, observations, thumbnails_of_symbols(observations), strict=True
        )
    )
    return html.panel(
        f"{amount(len(traces), 'trace')}, {amount(traces.steps, 'step')}",
        html.table(header, rows, traces.steps),
        html.figures(
            (f"values of {name}", f"{len(column.values):,}")
            for name, column in [*traces.all_columns.items()][: 3 + _MOST_COLUMNS]
        ),
    )


def html_of_plan(plan: "Plan") -> str:
    """Return the figures and the first rows of the policy."""
    from resolvent.planning.plan_io import facts_of

    model = plan.model
    first = [model.augmented_state(number) for number in range(min(len(model), html.MAX_ROWS))]
    pictures = thumbnails_of_symbols(observation for observation, *_ in first)
    header = [*by_name(model.augmented_state(0)), "action", "at least", "at most"]
    values = [plan.pessimistic, plan.optimistic]
    if plan.expected is not None:
        header.append("expected")
        values.append(plan.expected)
    rows = (
        [
            html.Pictured(symbol_text(observation), pictures[number]),
            *states,
            symbol_text(model.actions[int(plan.policy[number])]),
            *(f"{value[number]:.4g}" for value in values),
        ]
        for number, (observation, *states) in enumerate(first)
    )
    return html.panel("a plan", html.figures(facts_of(plan)), html.table(header, rows, len(model)))


def html_of_q_table(table: "QTable") -> str:
    """Return the figures of the training, and the first rows of the table."""
    from resolvent.rl.q_table import observation_text  # imports Gymnasium

    curve = table.curve
    figures = [
        ("observations", f"{len(table.observations):,}, and {table.q.shape[1]} actions"),
        ("learned in", f"{len(curve):,} episodes, {int(curve.steps.sum()):,} steps"),
    ]
    if len(curve):
        latest = curve.returns[-_LATEST_EPISODES:]
        figures.append((f"mean return of the last {len(latest)}", f"{latest.mean():.4g}"))
    if table.evaluations:
        figures.append(("value, by evaluation", f"{table.evaluations[-1].value:.4g}"))
    first = table.observations[: html.MAX_ROWS]
    rows = (
        [
            html.Pictured(observation_text(symbol, table.observation_names), pictures),
            observation_text(table.action(symbol), table.action_names),
            f"{row.max():.4g}",
        ]
        for symbol, pictures, row in zip(first, thumbnails_of_symbols(first), table.q, strict=False)
    )
    return html.panel(
        "learned by Q-learning",
        html.figures(figures),
        html.table(["observation", "action", "value"], rows, len(table.observations)),
    )
