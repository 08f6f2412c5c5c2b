"""Traces → what a notebook shows of them."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from resolvent import notebook
from resolvent.traces.symbols import label_text, symbol_text
from resolvent.traces.thumbnails import shown_together
from resolvent.wording import amount

if TYPE_CHECKING:
    from resolvent.traces.trace_set import TraceSet

_TRACES_SHOWN = 2
"""How many traces share the rows that are shown, if they are long."""

_COLUMNS_SHOWN = 3
"""How many columns of steps, the reward being the first, are shown."""


def html_of_traces(traces: "TraceSet") -> str:
    """Show the first steps of the first traces, pictures among them, and how many there are."""
    names = [*traces.columns][:_COLUMNS_SHOWN]
    header = ["trace", "step", "observation", "label", "action", *names]
    places = list(islice(_first_steps(traces), notebook.MOST_ROWS))
    seen = [
        traces.observations[traces.observation_codes[acted + number]] for number, _, acted in places
    ]
    columns = [(traces.actions, traces.action_codes), *(traces.columns[name] for name in names)]
    rows = (
        [
            number,
            step,
            notebook.Pictured(symbol_text(observation), pictures),
            label_text(traces.labels[traces.label_codes[acted + number]]),
            *(symbol_text(values[codes[acted]]) for values, codes in columns),
        ]
        for (number, step, acted), observation, pictures in zip(
            places, seen, shown_together(seen), strict=True
        )
    )
    return notebook.panel(
        f"{amount(len(traces), 'trace')}, {amount(traces.steps, 'step')}",
        notebook.table(header, rows, traces.steps),
        notebook.figures(
            (f"values of {name}", f"{len(column.values):,}")
            for name, column in [*traces.all_columns.items()][: 3 + _COLUMNS_SHOWN]
        ),
    )


def _first_steps(traces: "TraceSet") -> Iterator[tuple[int, int, int]]:
    """Yield the first few steps of each trace: of which trace, which of its steps, which row."""
    most = notebook.MOST_ROWS // min(_TRACES_SHOWN, max(len(traces), 1))
    lengths: list[Any] = np.diff(traces.offsets[: notebook.MOST_ROWS + 1]).tolist()
    for number, length in enumerate(lengths):
        for step in range(min(length, most)):
            yield number, step, int(traces.offsets[number]) + step
