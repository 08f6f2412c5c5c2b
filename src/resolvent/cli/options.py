"""Options that several commands share."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent.machines import Machine
from resolvent.traces.schema import DEFAULT_COLUMNS

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
MaxSteps = Annotated[
    int | None,
    typer.Option(metavar="K", min=1, help="Cut episodes after K steps.", show_default="no limit"),
]
Gamma = Annotated[
    float, typer.Option(metavar="G", help="What a reward one step later is worth: up to 1.")
]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="What a step nobody has taken may pay.",
        show_default="the least and most that was paid",
    ),
]


On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="WORKERS",
        help="Who goes through files that are scanned, and with strategy search or exact tries "
        "several ways side by side: threads, processes, ray (a Ray of this machine, or the "
        "cluster of RAY_ADDRESS) or ray:ADDRESS, a cluster.",
    ),
]
OnIfAsked = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WORKERS",
        help="Do many at once, on threads, processes, ray (a Ray of this machine, or the cluster "
        "of RAY_ADDRESS) or ray:ADDRESS, a cluster.",
        show_default="one after another",
    ),
]


Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="FOLDER",
        help="Keep here what was found in each piece of files that are scanned, and go on from "
        "there when the same command is run again; a folder or an address that all workers reach.",
        show_default="nothing is kept",
    ),
]


def _no_empty_name(listed: str | None) -> str | None:
    if listed is not None and "" in (names_in(listed) or ()):
        raise typer.BadParameter(f"'{listed}' has an empty name: separate names by single commas")
    return listed


Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        callback=_no_empty_name,
        help="What machines should predict, separated by commas: observation (the next one), "
        "reward, terminated, and further columns of TRACES by name, such as cost.",
        show_default="observation and reward; terminated if need be; all outputs of a log",
    ),
]
Traces = Annotated[
    Path,
    typer.Argument(
        metavar="TRACES",
        help="A file of traces (Parquet, JSON lines or the paper's JSON lines, also compressed by "
        "gzip or zstd), a folder of Parquet files, minari:NAMESPACE/NAME-v0, a Minari dataset; "
        "or a table whose columns you name.",
        show_default=False,
    ),
]
Machines = Annotated[
    Path,
    typer.Argument(
        metavar="MACHINES",
        help="A file that `resolvent infer -o` wrote.",
        show_default=False,
    ),
]


def names_in(listed: str | None) -> tuple[str, ...] | None:
    """Return the names in a list separated by commas; None where none is given.

    >>> names_in("reward, cost")
    ('reward', 'cost')
    """
    return None if listed is None else tuple(map(str.strip, listed.split(",")))


def columns_to_read(outputs: Iterable[str]) -> list[str]:
    """Return those of the columns to predict that are read only when they are named.

    >>> columns_to_read(["observation", "reward", "cost", "terminated"])
    ['cost']
    """
    return [name for name in outputs if name not in DEFAULT_COLUMNS]


def columns_of(machines: Mapping[str, Machine]) -> list[str]:
    """Return the columns that traces have to be read with for machines to be tested on them."""
    return columns_to_read(machine.predicts for machine in machines.values())


def choice(flag: str, names: Iterable[str], text: str, **more: Any) -> Any:
    """Make an option that takes one of some names and refuses any other at once."""
    known = tuple(names)

    def check(value: str | None) -> str | None:
        if value is not None and value not in known:
            raise typer.BadParameter(f"'{value}' is not one of {', '.join(known)}")
        return value

    return typer.Option(
        flag,
        metavar="NAME",
        help=f"{text} One of {', '.join(known)}.",
        callback=check,
        autocompletion=lambda: list(known),
        **more,
    )


Damaged = Annotated[
    str,
    choice(
        "--damaged",
        ("refuse", "skip"),
        "Parquet files that cannot be read: refuse them, or leave them out and say so.",
    ),
]
