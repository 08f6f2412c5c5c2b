"""`resolvent show`: a file of machines → text, Graphviz DOT or Mermaid."""

from typing import Annotated, Any

import typer

from resolvent.cli.options import Json, Machines, choice
from resolvent.cli.printing import print_json
from resolvent.errors import OptionError
from resolvent.machines import Machine, load, to_dot, to_mermaid, to_text

_DRAWINGS = {"text": to_text, "dot": to_dot, "mermaid": to_mermaid}


def show(
    machines: Machines,
    format: Annotated[  # noqa: A002
        str | None,
        choice("--format", _DRAWINGS, "Tables, or a drawing's source.", show_default="text"),
    ] = None,
    machine: Annotated[
        str, choice("--machine", ("transition", "reward", "both"), "Which machine to show.")
    ] = "both",
    every_output: Annotated[
        bool, typer.Option("--all", help="In text, show every output instead of the first 20.")
    ] = False,
    json: Json = False,
) -> None:
    """Print machines as tables, or as a drawing for Graphviz or Mermaid.

    For a picture, pipe `--machine transition --format dot` into `dot -Tsvg`.
    """
    if json and format is not None:
        raise OptionError("--json and --format exclude each other: leave out one")
    if every_output and (json or format not in (None, "text")):
        raise OptionError("--all is for text: JSON has every output, drawings have none")
    pair = load(machines)
    chosen = [one for one in (pair.transition, pair.reward) if machine in (one.kind, "both")]
    if json:
        print_json({"timing": str(pair.timing), **{one.kind: _tables(one) for one in chosen}})
        return
    if every_output:
        texts = [to_text(one, most_outputs=len(one.output_value)) for one in chosen]
    else:
        texts = [_DRAWINGS[format or "text"](one) for one in chosen]
    print("\n".join(texts), end="")


def _tables(machine: Machine) -> dict[str, Any]:
    """Return all that a machine holds, spelled out; an output's state null means every state."""
    codes = range(len(machine.labels))
    return {
        "states": machine.states,
        "reached_after": [
            [sorted(label) for label in machine.history(state)] for state in range(machine.states)
        ],
        "trivial_labels": [sorted(label) for label in machine.trivial_labels],
        "transitions": [
            {"from": state, "label": sorted(machine.labels[code]), "to": target}
            for state in range(machine.states)
            for code in codes
            if code not in machine.trivial
            and (target := int(machine.transitions[state, code])) >= 0
        ],
        "outputs": [answer._asdict() for answer in machine.answers()],
    }
