"""The commands and the text of `resolvent --help`, without importing any command."""

import os
import sys
from textwrap import wrap

COMMANDS = {
    "demo": "Show every step in a small house: traces, two machines, a check and a plan.",
    "solve": "Explore an environment until no policy is provably better, and say why it stops.",
    "collect": "Play episodes of random actions in an environment, and write their traces.",
    "diagnose": "Describe traces, and report problems that would prevent or weaken inference.",
    "infer": "Infer the machines that explain traces: by default a Transition and a Reward "
    "Machine.",
    "show": "Print machines as tables, as a drawing, or as other tools read them.",
    "check": "Replay traces through machines: how many steps do they predict right?",
    "report": "Write one HTML page: the machines drawn, traces replayed, and the evidence.",
    "plan": "Find the best policy from machines and traces, with no further interaction.",
    "train": "Learn to act in an environment by tabular Q-learning, as in the paper.",
    "convert": "Write traces in another format; that of TRACES is recognized by its content.",
    "reproduce": "Run the paper's experiments again, and compare the results with its figures.",
    "doctor": "Check this installation: versions, the build of the core, extras, a trial run.",
}
"""Each command with the first sentence of its docstring.

A command `name` is the function `name` of the module `resolvent.cli.commands.name`.
"""

OPTIONS = {
    "--version": "Print the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the "
    "installation.",
    "--help, -h": "Show this message and exit.",
}
"""The options of `resolvent` itself."""

_WIDEST = 100


def help_text() -> str:
    """Return the text of `resolvent --help`, as wide as the terminal."""
    width = min(_columns(), _WIDEST)
    purpose = "Infer the smallest memory that makes a partially observable world Markovian."
    exits = (
        "Exit codes: 0 done, 1 `check` found a wrong prediction (or no prediction), or `doctor` a "
        "fault, 2 bad input or options, 3 time limit reached, 130 interrupted, 143 ended by a "
        "signal."
    )
    lines = [
        "Usage: resolvent [OPTIONS] COMMAND [ARGS]...",
        *("", *wrap(purpose, width), "", "New here? Run `resolvent demo`."),
        *("", "Options:", *_rows(OPTIONS, width)),
        *("", "Commands:", *_rows(COMMANDS, width)),
        *("", "`resolvent COMMAND --help` explains a command.", "", *wrap(exits, width)),
    ]
    return "\n".join(lines)


def _rows(texts: dict[str, str], width: int) -> list[str]:
    name_width = max(map(len, texts)) + 4
    return [
        f"{'' if number else f'  {name}':<{name_width}}{line}"
        for name, text in texts.items()
        for number, line in enumerate(wrap(text, max(width - name_width, 20)))
    ]


def _columns() -> int:
    # As shutil.get_terminal_size, whose import takes as long as all the rest here.
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80
