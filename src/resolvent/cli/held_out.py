"""Options of commands that hold out a share of the traces."""

from typing import Annotated

import typer

from resolvent.inference.cross_validation import (  # noqa: F401
    MAX_SECONDS,
    SHARE,
    HoldoutReport,
    holdout_report,
)


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
        show_default=f"{SHARE:g}, unless inferring took longer than {MAX_SECONDS:.0f} seconds",
    ),
]
NoHeldOut = Annotated[
    bool,
    typer.Option("--no-held-out", help="Do not say what share of held-out steps is predicted."),
]
