"""The commands as Typer runs them: one is imported when it is asked for."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from resolvent.cli.table import COMMANDS, help_text


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
        single = typer.Typer(
            add_completion=False,
            context_settings=_CONTEXT,
            pretty_exceptions_enable=False,
            rich_markup_mode="rich",
        )
        function = function_of(cmd_name)
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        unwrapped = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        single.command(cls=_Command, help=unwrapped)(function)
        return typer.main.get_command(single)

    def get_help(self, ctx: Any) -> str:
        return help_text()


def function_of(command: str) -> Callable[..., Any]:
    """Import the function that a command is.

    >>> function_of("check").__name__
    'check'
    """
    function: Callable[..., Any] = getattr(
        import_module(f"resolvent.cli.commands.{command}"), command
    )
    return function


_CONTEXT = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    cls=_Group, context_settings=_CONTEXT, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import resolvent

        print(f"resolvent {resolvent.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Infer the smallest memory that makes a partially observable world Markovian."""
    if context.invoked_subcommand is None:
        print(help_text())
