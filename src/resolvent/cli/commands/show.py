"""`resolvent show`: a file of machines → text, drawings, or what other tools read."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from resolvent._util.files import atomic_write
from resolvent._util.text import listed, short
from resolvent.cli import flags, inputs, outputs
from resolvent.errors import OptionError
from resolvent.machines import EdgeRewardMachine, Machine, load
from resolvent.machines.io.edge_rewards import encode_reward_machine
from resolvent.machines.tables import TableEntry
from resolvent.traces import read_traces

_ALL = ("all", "both")
_LONGEST = 100  # maximum length of an access sequence in JSON: all of a chain are as long as n²
_FORMATS = ("text", "svg", "png", "dot", "mermaid", "mealy", "reward-machine")
_FORMAT = (
    "Tables, a picture, the source of a drawing, a Mealy machine for AALpy and LearnLib, or a "
    "reward machine in the format of Toro Icarte's code."
)
_MACHINE = "Name of the machine: transition, reward, or another one of MACHINES."
_EVERY_OUTPUT = "In text, show every output instead of the first 20."
_COMPLETE = "In mealy, output 'unseen' for steps never observed."
_TRACES = "With reward-machine: the traces of MACHINES, for the rewards of labels."
_OF_ONE_MACHINE = {"svg": "a picture", "png": "a picture", "mealy": "a Mealy machine"}


def show(
    machines: flags.Machines,
    format: Annotated[  # noqa: A002
        str | None, flags.option("NAME", _FORMAT, names=_FORMATS, show_default="text")
    ] = None,
    machine: Annotated[str, flags.option("NAME", _MACHINE)] = _ALL[0],
    every_output: Annotated[bool, typer.Option("--all", help=_EVERY_OUTPUT)] = False,
    complete: Annotated[bool, typer.Option("--complete", help=_COMPLETE)] = False,
    traces: Annotated[Path | None, flags.option("TRACES", _TRACES)] = None,
    output: flags.Output = None,
    json: flags.Json = False,
) -> None:
    """Print machines as tables, as a drawing, or as other tools read them.

    For a picture: `--machine transition --format svg -o picture.svg`.
    """
    if json and (format is not None or output is not None):
        raise OptionError("--json excludes --format and --output: leave out one")
    format = "json" if json else format or "text"  # noqa: A001
    if every_output and format != "text":
        raise OptionError("--all is for text: JSON and mealy have every output, drawings have none")
    if complete and format != "mealy":
        raise OptionError("--complete is for --format mealy")
    if (format == "reward-machine") != (traces is not None):
        raise OptionError(
            "--format reward-machine and --traces go together: give the traces that MACHINES was "
            "inferred from, for the rewards of labels"
        )
    if format == "png" and output is None and sys.stdout.isatty():
        raise OptionError("a PNG picture is not for a terminal: add -o FILE")
    outputs.check_targets(output, inputs=(machines, traces))
    loaded = load(machines)
    choice = f"add --machine {listed(loaded, ' or ')}"
    if machine not in loaded and machine not in _ALL:
        raise OptionError(f"{machines} has no {short(machine)} machine: {choice}, or leave it out")
    chosen = [loaded[machine]] if machine in loaded else list(loaded.values())
    if format in _OF_ONE_MACHINE and len(chosen) > 1:
        raise OptionError(f"{_OF_ONE_MACHINE[format]} shows one machine: {choice}")
    if format == "json":
        contents = {selected.name: _contents(selected) for selected in chosen}
        outputs.print_json({"timing": str(loaded.timing), **contents})
        return
    if traces is not None:
        if loaded.reward not in chosen:
            raise OptionError(
                "--format reward-machine shows the reward machine: leave out --machine"
            )
        columns = inputs.columns_of(loaded)
        with outputs.working() as bar:
            read = read_traces(traces, columns=columns, progress=bar.reading(traces))
        text: str | bytes = encode_reward_machine(
            EdgeRewardMachine.from_pair(loaded, read)
        ).decode()
    elif format == "png":
        text = chosen[0].to_png()
    else:
        text = "\n".join(_drawn(selected, format, every_output, complete) for selected in chosen)
    if output is not None:
        with atomic_write(output) as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        print(f"wrote {outputs.name_text(output)}")
    elif isinstance(text, bytes):
        sys.stdout.buffer.write(text)
    else:
        print(text, end="")


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


def _contents(machine: Machine) -> dict[str, Any]:
    """Return a machine as JSON values; an output with state null is the same in every state."""
    changing = sorted(set(range(len(machine.labels))).difference(machine.trivial))
    names = [sorted(label) for label in machine.labels]
    return {
        "states": machine.states,
        "reached_after": _reached_after(machine),
        "reached_by": [
            None if step is None else {"from": step[0], "label": sorted(step[1])}
            for step in map(machine.access_transition, range(machine.states))
        ],
        "trivial_labels": [sorted(label) for label in machine.trivial_labels],
        "transitions": [
            {"from": state, "label": names[code], "to": row[code]}
            for state, row in enumerate(machine.transitions.tolist())
            for code in changing
            if row[code] >= 0
        ],
        "outputs": [
            {**entry._asdict(), **_distribution(machine, entry)} for entry in machine.entries()
        ],
    }


def _reached_after(machine: Machine) -> list[list[list[str]] | None]:
    """Return the access sequence of each state, null for one that is longer than `_LONGEST`."""
    sequences: list[list[list[str]] | None] = [None] * machine.states
    sequences[0] = []
    for state in machine.reachable():
        if (step := machine.access_transition(state)) is not None:
            before = sequences[step[0]]
            if before is not None and len(before) < _LONGEST:
                sequences[state] = [*before, sorted(step[1])]
    return sequences


def _distribution(machine: Machine, entry: TableEntry) -> dict[str, Any]:
    """Return the share of each output of a query with several in its state."""
    if entry.state is None or not machine.is_noisy:
        return {}
    shares = machine.distribution(entry.state, entry.observation, entry.action)
    return {"distribution": [list(pair) for pair in shares.items()]} if len(shares) > 1 else {}
