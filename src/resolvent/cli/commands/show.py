"""`resolvent show`: a file of machines → text, drawings, or what other tools read."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.files import atomic_write
from resolvent._util.text import listed, short
from resolvent.cli.inputs import check_targets, columns_of
from resolvent.cli.options import Json, choice, option
from resolvent.cli.options import Machines as MachinesFile
from resolvent.cli.output import name_text, print_json
from resolvent.errors import OptionError
from resolvent.machines import EdgeRewardMachine, Machine, Machines, load
from resolvent.machines.io.reward_machine_text import encode_reward_machine
from resolvent.machines.tables import TableEntry
from resolvent.traces import read_traces
from resolvent.viz.terminal import ProgressBar

_PICTURES = ("svg", "png")
_ALL = ("all", "both")
_LONGEST = 100
"""Labels of a history that is spelled out."""
_FORMATS = ("text", *_PICTURES, "dot", "mermaid", "mealy", "reward-machine")


def show(
    machines: MachinesFile,
    format: Annotated[  # noqa: A002
        str | None,
        choice(
            "--format",
            _FORMATS,
            "Tables, a picture, the source of a drawing, a Mealy machine for AALpy and LearnLib, "
            "or a reward machine in the format of Toro Icarte's code.",
            show_default="text",
        ),
    ] = None,
    machine: Annotated[
        str,
        option("NAME", "Name of the machine: transition, reward, or another one of MACHINES."),
    ] = _ALL[0],
    every_output: Annotated[
        bool, typer.Option("--all", help="In text, show every output instead of the first 20.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="In mealy, output 'unseen' for steps never observed."),
    ] = False,
    traces: Annotated[
        Path | None,
        option(
            "TRACES",
            "With reward-machine: the traces of MACHINES, for the rewards of labels.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        option("FILE", "Write to a file instead.", "--output", "-o"),
    ] = None,
    json: Json = False,
) -> None:
    """Print machines as tables, as a drawing, or as other tools read them.

    For a picture: `--machine transition --format svg -o picture.svg`.
    """
    if json and (format is not None or output is not None):
        raise OptionError("--json excludes --format and --output: leave out one")
    _check_format(None if json else format or "text", every_output, complete, traces)
    if format == "png" and output is None and sys.stdout.isatty():
        raise OptionError("a PNG picture is not for a terminal: add -o FILE")
    if output is not None:
        check_targets(output, inputs=(machines, traces))
    loaded = load(machines)
    chosen = _chosen(loaded, machine, machines)
    _check_chosen(format, chosen, loaded)
    if json:
        machine_tables = {selected.name: _tables(selected) for selected in chosen}
        print_json({"timing": str(loaded.timing), **machine_tables})
        return
    if traces is not None:
        content: str | bytes = _reward_machine(loaded, traces)
    elif format == "png":
        content = chosen[0].to_png()
    else:
        drawn = (_drawn(selected, format or "text", every_output, complete) for selected in chosen)
        content = "\n".join(drawn)
    if output is not None:
        with atomic_write(output) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        print(f"wrote {name_text(output)}")
    elif isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        print(content, end="")


def _check_format(
    format: str | None,  # noqa: A002
    every_output: bool,
    complete: bool,
    traces: Path | None,
) -> None:
    """Refuse options that the format (None for JSON) cannot honour."""
    if every_output and format != "text":
        raise OptionError("--all is for text: JSON and mealy have every output, drawings have none")
    if complete and format != "mealy":
        raise OptionError("--complete is for --format mealy")
    if (format == "reward-machine") != (traces is not None):
        raise OptionError(
            "--format reward-machine and --traces go together: the traces that MACHINES was "
            "inferred from tell what each label pays"
        )


def _chosen(machines: Machines, name: str, source: Path) -> list[Machine]:
    if name in machines:
        return [machines[name]]
    if name in _ALL:
        return list(machines.values())
    raise OptionError(
        f"{source} has no {short(name)} machine: add --machine {listed(machines, ' or ')}, "
        f"or leave it out"
    )


def _check_chosen(
    format: str | None,  # noqa: A002
    chosen: list[Machine],
    machines: Machines,
) -> None:
    """Refuse more machines than the format can show, or another one."""
    kinds = listed((selected.name for selected in chosen), " or ")
    if format == "mealy" and len(chosen) > 1:
        raise OptionError(f"a Mealy machine is one machine: add --machine {kinds}")
    if format in _PICTURES and len(chosen) > 1:
        raise OptionError(f"a picture shows one machine: add --machine {kinds}")
    if format == "reward-machine" and machines.reward not in chosen:
        raise OptionError("--format reward-machine shows the reward machine: leave out --machine")


def _drawn(machine: Machine, format: str, every_output: bool, complete: bool) -> str:  # noqa: A002
    match format:
        case "dot":
            return machine.to_dot()
        case "mermaid":
            return machine.to_mermaid()
        case "svg":
            return machine.to_svg()
        case "mealy":
            return machine.to_mealy_dot(complete=complete)
    most = {"most_outputs": len(machine.output_value)} if every_output else {}
    return machine.to_text(**most)


def _reward_machine(machines: Machines, source: Path) -> str:
    with ProgressBar() as bar:
        traces = read_traces(source, columns=columns_of(machines), progress=bar.reading(source))
    return encode_reward_machine(EdgeRewardMachine.from_pair(machines, traces)).decode()


def _tables(machine: Machine) -> dict[str, Any]:
    """Return all that a machine holds, spelled out; an output's state null means every state."""
    changing = sorted(set(range(len(machine.labels))).difference(machine.trivial))
    names = [sorted(label) for label in machine.labels]
    return {
        "states": machine.states,
        "reached_after": _reached_after(machine),
        "reached_by": [
            None if move is None else {"from": move[0], "label": sorted(move[1])}
            for move in map(machine.access_transition, range(machine.states))
        ],
        "trivial_labels": [sorted(label) for label in machine.trivial_labels],
        "transitions": [
            {"from": state, "label": names[code], "to": row[code]}
            for state, row in enumerate(machine.transitions.tolist())
            for code in changing
            if row[code] >= 0
        ],
        "outputs": [
            {**answer._asdict(), **_shares(machine, answer)} for answer in machine.entries()
        ],
    }


def _reached_after(machine: Machine) -> list[list[list[str]] | None]:
    """Return the shortest label history of each state, null for one that is longer than `_LONGEST`.

    All histories of a long chain together would be as long as its square.
    """
    paths: list[list[list[str]] | None] = [None] * machine.states
    paths[0] = []
    for state in machine.reachable():
        if (move := machine.access_transition(state)) is not None:
            before = paths[move[0]]
            if before is not None and len(before) < _LONGEST:
                paths[state] = [*before, sorted(move[1])]
    return paths


def _shares(machine: Machine, answer: TableEntry) -> dict[str, Any]:
    """Return all answers where a state has more than one, each with its share."""
    if answer.state is None or not machine.is_noisy:
        return {}
    shares = machine.distribution(answer.state, answer.observation, answer.action)
    return {"distribution": [list(pair) for pair in shares.items()]} if len(shares) > 1 else {}
