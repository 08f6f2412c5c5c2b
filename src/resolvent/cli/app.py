"""The table of commands."""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from resolvent.cli.commands.check import check
from resolvent.cli.commands.collect import collect
from resolvent.cli.commands.convert import convert
from resolvent.cli.commands.demo import demo
from resolvent.cli.commands.diagnose import diagnose
from resolvent.cli.commands.doctor import doctor
from resolvent.cli.commands.infer import infer
from resolvent.cli.commands.plan import plan
from resolvent.cli.commands.report import report
from resolvent.cli.commands.reproduce import reproduce
from resolvent.cli.commands.show import show
from resolvent.cli.commands.solve import solve
from resolvent.cli.commands.train import train


class _Command(TyperCommand):
    """A command whose help does not say that its flags take values."""

    def get_params(self, ctx: Any) -> Any:
        return _without_values(super().get_params(ctx))


class _Group(TyperGroup):
    """The same for the options of `resolvent` itself."""

    def get_params(self, ctx: Any) -> Any:
        return _without_values(super().get_params(ctx))


def _without_values(parameters: list[Any]) -> list[Any]:
    for one in parameters:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return parameters


app = typer.Typer(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Exit codes: 0 done, 1 `check` found a wrong prediction or none or `doctor` a fault, "
    "2 bad input or options, 3 time limit reached, 130 interrupted, 143 ended by a signal.",
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
    """Infer the smallest memory that makes a partially observable world Markovian.

    New here? Run [bold]resolvent demo[/bold].
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (
    *(demo, solve, collect, diagnose, infer, show, check, report, plan, train),
    *(convert, reproduce, doctor),
):
    app.command(cls=_Command)(command)
