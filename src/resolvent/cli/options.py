"""Flags and arguments of commands, built from the functions and records that take their values.

The first sentence of a parameter's description in a docstring is the help of its flag.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import typer

from resolvent._util.text import descriptions
from resolvent.errors import OptionError
from resolvent.preprocess.labeling import LABEL_ORIGINS
from resolvent.traces.io.formats import FORMATS

if TYPE_CHECKING:
    from resolvent.rl.collect import NamedEnvironment

LABEL_SOURCES = (*LABEL_ORIGINS, "auto")
"""The values of `--labels`."""

_SCALARS = bool, int, float, str, tuple[float, float]
_METAVARS = {int: "N", float: "X", tuple[float, float]: "LOW HIGH"}


def flag(
    source: Callable[..., Any],
    name: str,
    *spellings: str,
    kind: Any = None,
    choices: Iterable[str] = (),
    text: str | None = None,
    parse: Callable[[Any], Any] | None = None,
    negated: bool = False,
    panel: str | None = None,
    **typer_options: Any,
) -> inspect.Parameter:
    """Return the flag for a parameter of a function or record, by its declaration there.

    `negated` is for a switch that turns the parameter off.
    """
    declared = inspect.signature(source).parameters[name]
    declared_kind, literals = _kind_of(declared.annotation)
    names = tuple(choices) or (literals if kind is None else ())
    kind = kind or declared_kind
    default = declared.default if kind is type(declared.default) else None
    help_text = text or first_sentence(descriptions(source)[name])
    if negated:
        default, parse = False, lambda given: False if given else None
    if kind == list[str]:
        help_text += " Repeatable."
    option_names = spellings or (f"--{name.replace('_', '-')}",)
    typer_options = {"show_default": default is not None, "rich_help_panel": panel} | typer_options
    if names:
        declaration = choice(names, help_text, *option_names, **typer_options)
    else:
        metavar = typer_options.pop("metavar", _METAVARS.get(kind, "TEXT"))
        typer_options["callback"] = None if parse is None else _unless_missing(parse)
        declaration = option(metavar, help_text, *option_names, **typer_options)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if default is not None else kind | None, declaration],
    )


def flags(source: Callable[..., Any], *names: str) -> list[inspect.Parameter]:
    """Return the flags for several parameters, all by their declarations."""
    return [flag(source, name) for name in names]


def takes(
    group: str,
    *parameters: inspect.Parameter,
    build: Callable[[dict[str, Any]], Any] = dict,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add flags to a command, which gets their values by name as its argument `group`.

    Flags without a value are left out, so that defaults are those of the function called.
    """
    # A prefix keeps the names apart from those of the command's own parameters.
    added = [parameter.replace(name=f"{group}_{parameter.name}") for parameter in parameters]

    def extended(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_flags(*arguments: Any, **options: Any) -> None:
            values = {
                parameter.name: options.pop(f"{group}_{parameter.name}", None)
                for parameter in parameters
            }
            stated = {name: value for name, value in values.items() if value not in (None, [])}
            command(*arguments, **{group: build(stated)}, **options)

        signature = inspect.signature(command)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != group]
        with_flags.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        with_flags.__annotations__ = {
            parameter.name: parameter.annotation for parameter in (*own, *added)
        }
        return with_flags

    return extended


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, as plain text for a terminal.

    >>> first_sentence('One of "auto" or `x`. The rest is for Python.')
    'One of auto or x.'
    """
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text, maxsplit=1)[0].translate({34: None, 96: None})


def _kind_of(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the type of a flag's value, and its names where only these are allowed."""
    is_union = get_origin(annotation) in (Union, UnionType)
    parts = get_args(annotation) if is_union else (annotation,)
    kind = next((part for part in parts if part in _SCALARS), None)
    if kind is not None:
        return kind, ()
    literals = [name for part in parts if get_origin(part) is Literal for name in get_args(part)]
    return str, tuple(literals)


def _unless_missing(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def parsed(value: Any) -> Any:  # Typer passes the value to a function of one parameter
        return None if value is None else parse(value)

    return parsed


def names_in(listed: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas.

    >>> names_in("reward, cost")
    ('reward', 'cost')
    """
    names = tuple(map(str.strip, listed.split(",")))
    if "" in names:
        raise typer.BadParameter(f"'{listed}' has an empty name: separate names by single commas")
    return names


def setting(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; the value is JSON if it can be, and otherwise text.

    >>> setting("length=20"), setting("task=mail"), setting('keys=["north-west"]')
    (('length', 20), ('task', 'mail'), ('keys', ['north-west']))
    """
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise OptionError(f"--set {text}: write NAME=VALUE, such as world_seed=3")
    return name, json_or_text(value)


def json_or_text(text: str) -> Any:
    """Return a value that may be JSON, such as 5, or else the text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def built_in_worlds(incomplete: str) -> list[str]:
    """Return the names of built-in environments, for shells that complete them."""
    import gymnasium as gym  # only commands that play in environments need it

    ids = (name for name in gym.registry if name.startswith("resolvent/"))
    return sorted(name for name in ids if name.startswith(incomplete))


def choice(
    names: Iterable[str],
    text: str,
    *spellings: str,
    kind: Callable[..., Any] = typer.Option,
    **typer_options: Any,
) -> Any:
    """Return an option, or an argument, whose values must be among some names."""
    allowed = tuple(names)

    def checked(value: Any) -> Any:
        for name in value if isinstance(value, list) else [value]:
            if name not in (None, *allowed):
                raise typer.BadParameter(f"'{name}' is not one of {', '.join(allowed)}")
        return value

    if not all(name in text for name in allowed):
        text += f" One of {', '.join(allowed)}."
    return kind(
        *spellings,
        **{"metavar": "NAME", "help": text, **typer_options},
        callback=checked,
        autocompletion=lambda: list(allowed),
    )


def option(metavar: str, text: str, *spellings: str, **typer_options: Any) -> Any:
    """Return an option with a value; `text` is its help."""
    return typer.Option(*spellings, metavar=metavar, help=text, **typer_options)


Environment = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help="A Gymnasium id such as resolvent/House-v0; module:Name-v0 to import first the module "
        "that registers it; or module:Class for a class or a function of the module.",
        autocompletion=built_in_worlds,
        show_default=False,
    ),
]
Traces = Annotated[
    str,
    typer.Argument(
        metavar="TRACES",
        help="A file of traces (Parquet or JSON lines, also compressed by gzip or zstd); a folder "
        "of Parquet files; a glob of them in quotes, or an address such as s3://bucket/logs; "
        "minari:NAMESPACE/NAME-v0, a Minari dataset; or a table whose columns you name.",
        show_default=False,
    ),
]
Machines = Annotated[
    Path,
    typer.Argument(
        metavar="MACHINES", help="A file that `resolvent infer -o` wrote.", show_default=False
    ),
]
Settings = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE", "An argument of the environment, such as world_seed=3; repeatable.", "--set"
    ),
]
Imports = Annotated[
    list[str] | None,
    option(
        "MODULE",
        "A module to import first, such as minigrid, for the environments that it registers; "
        "repeatable.",
        "--import",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
Output = Annotated[Path | None, option("FILE", "The file to write.", "--output", "-o")]
ShortOutput = Annotated[Path | None, option("FILE", "The file to write.", "-o")]
TracesOutput = Annotated[
    Path,
    option(
        "FILE",
        "The file to write: .parquet, .jsonl, .jsonl.gz, .jsonl.zst, or minari:NAMESPACE/NAME-v0.",
        "--output",
        "-o",
    ),
]
Columns = Annotated[
    list[str] | None,
    option(
        "NAME",
        "A further column of the traces, such as a value of the environment's info, a column "
        "of a table, or a key of JSON lines; repeatable.",
        "--columns",
    ),
]

Episodes = Annotated[int, option("N", "Number of episodes.", "--episodes", "-n", min=1)]
Seed = Annotated[int, option("N", "The same seed gives the same result.", min=0)]
MaxSteps = Annotated[
    int | None,
    option("N", "Maximum length of an episode.", min=1, show_default="no limit"),
]
WrittenFormat = Annotated[
    str | None,
    choice(FORMATS, "The format, instead of the one of the file's name.", "--format"),
]


_WORKERS = (
    "threads, processes, ray (the cluster of RAY_ADDRESS, or a Ray of this machine) or ray:ADDRESS."
)
On = Annotated[str, option("WORKERS", f"Workers for files that are scanned: {_WORKERS}", "--on")]
OnIfAsked = Annotated[
    str | None,
    option(
        "WORKERS",
        f"Workers to run side by side: {_WORKERS}",
        "--on",
        show_default="one after another",
    ),
]


def environment_maker(
    environment: str, settings: Sequence[str] | None, imports: Sequence[str] | None = None
) -> "NamedEnvironment":
    """Return the function that makes the environment that a user named."""
    from resolvent.rl.collect import NamedEnvironment

    return NamedEnvironment(environment, dict(map(setting, settings or ())), tuple(imports or ()))
