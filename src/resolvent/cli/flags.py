"""Flags and arguments of commands, built from the functions that take their values; their app.

The first sentence of a parameter's description in a docstring is the help of its flag. A command is
imported when it is run or completed.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import typer
from typer.core import TyperCommand, TyperGroup

from resolvent._util.text import descriptions
from resolvent.cli import COMMANDS, OPTIONS, help_text
from resolvent.errors import OptionError
from resolvent.preprocess.labeling import LABEL_ORIGINS
from resolvent.registration import WORLDS
from resolvent.traces.io.formats import FORMATS

if TYPE_CHECKING:
    from resolvent.rl.collect import NamedEnvironment

LABEL_SOURCES = (*LABEL_ORIGINS, "auto")  # the values of `--labels`

# --- Flags of parameters ------------------------------------------------------------------------

_METAVARS = {bool: "", int: "N", float: "X", str: "TEXT", tuple[float, float]: "LOW HIGH"}


def option(
    metavar: str,
    text: str,
    *spellings: str,
    names: Iterable[str] = (),
    kind: Callable[..., Any] = typer.Option,
    **typer_options: Any,
) -> Any:
    """Return an option, or an argument, with the help `text`, and values among `names`, if any."""
    allowed = tuple(names)

    def checked(value: Any) -> Any:
        for name in value if isinstance(value, list) else [value]:
            if name not in (None, *allowed):
                raise typer.BadParameter(f"'{name}' is not one of {', '.join(allowed)}")
        return value

    if allowed:
        if not all(name in text for name in allowed):
            text += f" One of {', '.join(allowed)}."
        typer_options |= {"callback": checked, "autocompletion": lambda: list(allowed)}
    return kind(*spellings, metavar=metavar, help=text, **typer_options)


def flag(
    source: Callable[..., Any],
    name: str,
    *spellings: str,
    kind: Any = None,
    names: Iterable[str] = (),
    metavar: str | None = None,
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
    names = tuple(names) or (literals if kind is None else ())
    kind = kind or declared_kind
    default = declared.default if kind is type(declared.default) else None
    text = text or first_sentence(descriptions(source)[name])
    if negated:
        default, parse = False, lambda is_set: False if is_set else None
    if kind == list[str]:
        text += " Repeatable."
    typer_options = {"show_default": default is not None, "rich_help_panel": panel} | typer_options
    if parse is not None:
        typer_options["callback"] = lambda value: None if value is None else parse(value)
    declaration = option(
        metavar or ("NAME" if names else _METAVARS.get(kind, "TEXT")),
        text,
        *(spellings or (f"--{name.replace('_', '-')}",)),
        names=names,
        **typer_options,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind if default is not None else kind | None, declaration],
    )


def declared(source: Callable[..., Any], *names: str) -> list[inspect.Parameter]:
    """Return the flags for several parameters, all by their declarations."""
    return [flag(source, name) for name in names]


def takes(
    group: str, *parameters: inspect.Parameter, build: Callable[[dict[str, Any]], Any] = dict
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
                parameter.name: value
                for parameter in parameters
                if (value := options.pop(f"{group}_{parameter.name}", None)) not in (None, [])
            }
            command(*arguments, **{group: build(values)}, **options)

        signature = inspect.signature(command)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != group]
        with_flags.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        with_flags.__annotations__ = {
            parameter.name: parameter.annotation for parameter in (*own, *added)
        }
        return with_flags

    return extended


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, as plain text for a terminal."""
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text, maxsplit=1)[0].translate({34: None, 96: None})


def _kind_of(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the type of a flag's value, and its names where only these are allowed."""
    is_union = get_origin(annotation) in (Union, UnionType)
    parts = get_args(annotation) if is_union else (annotation,)
    for part in parts:
        if part in _METAVARS:
            return part, ()
    literals = [name for part in parts if get_origin(part) is Literal for name in get_args(part)]
    return str, tuple(literals)


def names_in(listed: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas."""
    names = tuple(map(str.strip, listed.split(",")))
    if "" in names:
        raise typer.BadParameter(f"'{listed}' has an empty name: separate names by single commas")
    return names


def setting(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; the value is JSON if it can be, and otherwise text."""
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


# --- Flags and arguments of several commands ----------------------------------------------------


def world_ids() -> list[str]:
    """Return the ids of built-in environments, for shells that complete them."""
    return [f"resolvent/{name}-v0" for name in WORLDS]


Environment = Annotated[
    str,
    option(
        "ENV",
        "A Gymnasium id such as resolvent/House-v0; module:Name-v0 to import first the module "
        "that registers it; or module:Class for a class or a function of the module.",
        kind=typer.Argument,
        autocompletion=world_ids,
        show_default=False,
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
Traces = Annotated[
    str,
    option(
        "TRACES",
        "A file of traces (Parquet or JSON lines, also compressed by gzip or zstd); a folder "
        "of Parquet files; a glob of them in quotes, or an address such as s3://bucket/logs; "
        "minari:NAMESPACE/NAME-v0, a Minari dataset; or a table whose columns you name.",
        kind=typer.Argument,
        show_default=False,
    ),
]
_MACHINES = "A file that `resolvent infer -o` wrote."
Machines = Annotated[Path, option("MACHINES", _MACHINES, kind=typer.Argument, show_default=False)]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
Output = Annotated[Path | None, option("FILE", "The file to write.", "--output", "-o")]
ShortOutput = Annotated[Path | None, option("FILE", "The file to write.", "-o")]
TRACES_FILE = (
    "The file to write: .parquet, .jsonl, .jsonl.gz, .jsonl.zst, or minari:NAMESPACE/NAME-v0."
)
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
    int | None, option("N", "Maximum length of an episode.", min=1, show_default="no limit")
]
WrittenFormat = Annotated[
    str | None,
    option("NAME", "The format, instead of the one of the file's name.", "--format", names=FORMATS),
]
_ON = option(
    "WORKERS",
    "Workers for files that are scanned, or episodes side by side: threads, processes, ray (the "
    "cluster of RAY_ADDRESS, or a Ray of this machine) or ray:ADDRESS.",
    "--on",
)
On = Annotated[str, _ON]
OnIfAsked = Annotated[str | None, _ON]


def environment_maker(
    environment: str, settings: Sequence[str] | None, imports: Sequence[str] | None
) -> "NamedEnvironment":
    """Return the function that makes the environment that a user named."""
    from resolvent.rl.collect import NamedEnvironment

    return NamedEnvironment(environment, dict(map(setting, settings or ())), tuple(imports or ()))


# --- The commands -------------------------------------------------------------------------------


class _Command(TyperCommand):
    """A command whose help does not say that its flags take values."""

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class _Group(TyperGroup):
    """The commands by name; only the one that is run or completed is imported."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: _Command(name, short_help=text) for name, text in COMMANDS.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        single = typer.Typer(add_completion=False, **_SETTINGS)
        function = function_of(cmd_name)
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        unwrapped = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        single.command(cls=_Command, help=unwrapped)(function)
        return typer.main.get_command(single)

    def get_help(self, ctx: Any) -> str:
        return help_text()


def function_of(command: str) -> Callable[..., Any]:
    """Import the function that a command is."""
    module = import_module(f"resolvent.cli.commands.{command}")
    function: Callable[..., Any] = getattr(module, command)
    return function


_SETTINGS: dict[str, Any] = {
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
}

app = typer.Typer(cls=_Group, **_SETTINGS)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"resolvent {version('resolvent')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option(callback=_print_version, is_eager=True, help=OPTIONS["--version"])
    ] = False,
) -> None:
    """Infer the smallest memory that makes a partially observable world Markovian."""
