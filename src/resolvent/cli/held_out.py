"""An inference and its traces → what it predicts of held-out steps, if that costs little."""

import time
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from resolvent.errors import ResolventError, TimeLimitReached
from resolvent.holding_out import SHARE, HeldOut, held_out
from resolvent.progress import Listener
from resolvent.result import InferenceResult
from resolvent.traces import TraceFolder, TraceSet

LONGEST: Final = 20.0
"""Seconds: where inferring took longer, it is not done once more unless the user says so."""

_AT_LEAST, _TIMES = 5.0, 2.0
"""Inferring once more may take so many seconds, or so many times as long as it did at first."""


def _between_0_and_1(share: float | None) -> float | None:
    if share is not None and not 0 < share < 1:
        raise typer.BadParameter(f"{share:g} does not lie between 0 and 1")
    return share


HeldOutShare = Annotated[
    float | None,
    typer.Option(
        "--held-out",
        metavar="SHARE",
        callback=_between_0_and_1,
        help="Infer once more without this share of the traces, and say how many of its steps are "
        "predicted, however long that takes.",
        show_default=f"{SHARE:g}, unless inferring took longer than {LONGEST:.0f} seconds",
    ),
]
NoHeldOut = Annotated[
    bool,
    typer.Option("--no-held-out", help="Do not say what share of held-out steps is predicted."),
]


@dataclass(frozen=True)
class HeldOutTest:
    """What came of holding out traces: figures, or why there are none."""

    found: HeldOut | None = None
    skipped: str | None = None
    seconds: float = 0.0

    @property
    def is_all_right(self) -> bool:
        """Whether steps were held out, and not one was predicted wrong."""
        return self.found is not None and not any(one.wrong for one in self.found.values())

    def figures(self) -> dict[str, Any]:
        """Return it as JSON values."""
        part = None if self.found is None else self.found.part
        return {
            "held_out": None if self.found is None else self.found.as_dict(),
            "held_out_part": None if part is None else part.as_dict(),
            "held_out_skipped": self.skipped,
        }

    def lines(self) -> list[str]:
        """Say it for people."""
        if self.found is not None:
            return f"held out: {self.found}".splitlines()
        return [] if self.skipped is None else [f"held out: nothing, {self.skipped}"]


def held_out_test(
    result: InferenceResult,
    traces: TraceSet | TraceFolder,
    share: float | None,
    took: float,
    progress: Listener | None = None,
) -> HeldOutTest:
    """Hold out a share of the traces; without one, only if it takes about as long as inferring.

    That `took` so many seconds.
    """
    limit = result.options.time_limit
    asked = share is not None
    # Of a place that was only opened there are a million steps to infer from, and in memory.
    if not asked and took > LONGEST and isinstance(traces, TraceSet):
        return HeldOutTest(
            skipped=f"since inferring once more would take another {took:.0f} seconds: "
            f"--held-out {SHARE:g} does it all the same"
        )
    most = None if asked else max(_TIMES * took, _AT_LEAST)
    if limit is not None:
        left = limit - took
        if left < took and isinstance(traces, TraceSet):
            return HeldOutTest(
                skipped="since the time limit leaves too little for inferring once more"
            )
        most = left if most is None else min(left, most)
    started = time.perf_counter()
    try:
        found = held_out(result, traces, share=share or SHARE, time_limit=most, progress=progress)
    except TimeLimitReached:
        return HeldOutTest(
            skipped="since inferring once more took longer than at first: "
            f"--held-out {SHARE:g} waits for it",
            seconds=time.perf_counter() - started,
        )
    except ResolventError as error:
        return HeldOutTest(skipped=f"for {error}", seconds=time.perf_counter() - started)
    return HeldOutTest(found, seconds=time.perf_counter() - started)
