"""What the package says of itself → docs/reference/*.md, docs/formats/*.schema.json, its stub.

`python docs/generate.py` writes them; a test holds them to what the package says now.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
from typer.models import ArgumentInfo, OptionInfo

import resolvent
from resolvent.cli import COMMANDS
from resolvent.cli.flags import function_of
from resolvent.machines.io import json as machine_json
from resolvent.machines.io import schema as machine_schema
from resolvent.planning import plan_io as plan_files
from resolvent.rl import q_table as policy_files
from resolvent.traces.io import json_lines
from resolvent.traces.schema import RESERVED
from resolvent.traces.symbols import Symbol
from resolvent.worlds import random_world

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
from reference_pages import pages  # noqa: E402

_SYMBOL = {
    "title": "Symbol",
    "description": "An observation or action. Lists stand for tuples.",
    "anyOf": [
        {"type": ["boolean", "number", "string"]},
        {"type": "array", "items": {"$ref": "#/$defs/Symbol"}},
    ],
}

_TITLES = {
    "machines": "Machines, as Machines.save writes them",
    "machines-v1": "A pair of machines, as MachinePair.save wrote it in format version 1",
    "plan": "A plan, as Plan.save writes it",
    "policy": "The values that Q-learning learned, as QTable.save writes them",
    "world": "A grid world, as RandomWorld.save writes it",
    "episode": "An episode, as a line of JSON lines",
}


def commands() -> str:
    """Return the page of all commands, from their signatures."""
    lines = [
        "# Commands",
        "",
        "Every command accepts `--help`. Errors are one line that names the problem, its location",
        "and a remedy. Exit codes: 0 done; 1 `check` found a wrong prediction or no prediction at",
        "all, or `doctor` a fault; 2 invalid input or options; 3 time limit reached; 130",
        "interrupted; 143 terminated by a signal.",
        "",
        "`resolvent --install-completion` makes your shell complete commands, options and the",
        "names of environments. Commands that take more than a second show their progress, only",
        "on a terminal.",
        "",
        "<!-- Written by docs/generate.py: edit the commands instead. -->",
    ]
    for name in COMMANDS:
        lines += ["", *_command(function_of(name))]
    return "\n".join(lines) + "\n"


def _command(function: Callable[..., Any]) -> Iterator[str]:
    arguments, options = [], []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])[:2]
        if isinstance(info, ArgumentInfo):
            arguments.append((info.metavar or name.upper(), _sentence(info.help)))
        elif isinstance(info, OptionInfo):
            options.append(_option(name, kind, info, parameter.default))
    usage = " ".join(["resolvent", function.__name__, *(name for name, _ in arguments)])
    yield f"## {function.__name__}"
    yield ""
    yield inspect.cleandoc(function.__doc__ or "").replace("\b\n", "")
    yield ""
    yield f"```text\n{usage} [OPTIONS]\n```"
    yield ""
    yield "| option | | default |"
    yield "|---|---|---|"
    for name, text in arguments:
        yield f"| `{name}` | {text} | |"
    for name, text, default in options:
        yield f"| `{name}` | {text} | {default} |"


def _option(name: str, kind: Any, info: OptionInfo, default: Any) -> tuple[str, str, str]:
    # Typer keeps the first flag of an annotation as a default, and moves it later.
    flags = [*([info.default] if isinstance(info.default, str) else []), *(info.param_decls or ())]
    flags = flags or [f"--{name.replace('_', '-')}"]
    takes_value = kind is not bool and bool not in get_args(kind)
    value = ""
    if takes_value:
        kinds = {kind, *get_args(kind)}
        value = info.metavar or ("N" if int in kinds else "X" if float in kinds else name.upper())
    shown = "" if default is None or default is False or default == [] else f"`{default}`"
    if isinstance(info.show_default, str):
        shown = info.show_default
    if default is inspect.Parameter.empty:
        shown = "required"
    text = _sentence(info.help)
    return f"{', '.join(flags)} {value}".strip(), text, shown


def _sentence(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("<", "&lt;")


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each format that a struct of the package describes, by name."""
    found = {
        "machines": _schema(
            "machines", machine_schema.File, machine_json.FORMAT, machine_json.VERSION
        ),
        "plan": _schema("plan", plan_files.PlanFile, plan_files.FORMAT, plan_files.VERSION),
        "policy": _schema("policy", policy_files.QTable, policy_files.FORMAT, policy_files.VERSION),
        "world": _schema(
            "world", random_world.WorldFile, random_world.FORMAT, random_world.VERSION
        ),
        "episode": _schema("episode", json_lines._Episode),
    }
    parts = found["machines"]["$defs"]
    tables = parts["Tables"]["properties"]
    for column in ("observations", "actions", "outputs"):
        _hold_symbols(found["machines"], tables[column])
    parts["Decisions"]["properties"]["transitions"]["items"]["minimum"] = 0
    parts["Support"]["properties"]["alternatives"]["items"]["minimum"] = 0
    found["machines"]["properties"]["machines"]["minItems"] = 1
    parts["Machine"]["properties"]["predicts"]["minLength"] = 1
    parts["ObservedConstants"]["properties"]["rows"]["items"]["minimum"] = 0
    output_counts = parts["Machine"]["properties"]["output_counts"]
    output_counts["minItems"] = 2
    rows = [
        parts["ObservedConstants"]["properties"]["sets"],
        *parts["Termination"]["properties"].values(),
    ]
    for row in rows:
        row["items"]["items"]["minimum"] = 0
    plan = found["plan"]
    plan["$defs"]["Symbol"] = _SYMBOL
    for column in ("observation", "action"):
        plan["$defs"]["Row"]["properties"][column] = {"$ref": "#/$defs/Symbol"}
    policy = found["policy"]
    policy["$defs"]["Symbol"] = _SYMBOL
    policy["properties"]["q"]["items"] = {"type": "array", "items": {"type": "number"}}
    policy["$defs"]["Curve"]["properties"]["steps"]["items"] = {"type": "integer", "minimum": 0}
    value = policy["$defs"]["Evaluation"]["properties"]["value"]
    policy["$defs"]["Evaluation"]["properties"]["value"] = {
        "anyOf": [value, {"enum": ["inf", "-inf"]}]
    }
    episode = found["episode"]
    for column in ("observations", "actions"):
        _hold_symbols(episode, episode["properties"][column])
    for column, least in (("observations", 2), ("labels", 2), ("actions", 1), ("rewards", 1)):
        episode["properties"][column]["minItems"] = least
    further = episode["properties"]["columns"]
    further["propertyNames"] = {"minLength": 1, "not": {"enum": sorted(RESERVED)}}
    further["additionalProperties"]["minItems"] = 1
    _hold_symbols(episode, further["additionalProperties"])
    return found


def _schema(name: str, kind: type, format_name: str = "", version: int = 0) -> dict[str, Any]:
    written = json.dumps(msgspec.json.schema(kind, schema_hook=_own_schema))
    schema = json.loads(written.replace("$defs/_", "$defs/"))
    defined = {key.removeprefix("_"): value for key, value in schema["$defs"].items()}
    for key, value in defined.items():
        value["title"] = key
    top = defined.pop(schema["$ref"].removeprefix("#/$defs/"))
    if format_name:
        header = {"format": {"const": format_name}, "version": {"const": version}}
        if "format" not in top["properties"]:
            top["properties"] = header | top["properties"]
            top["required"] = [*header, *top["required"]]
        top["properties"] |= header
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **top}
    found["title"] = _TITLES[name]
    if defined:
        found["$defs"] = defined
    _count_from_zero(found)
    return found


def _own_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a type that is not JSON's: a symbol, or a column of numbers."""
    if kind is Symbol:
        return {"$ref": "#/$defs/Symbol"}
    return {"type": "array", "items": {"type": "number"}}


def _hold_symbols(schema: dict[str, Any], column: dict[str, Any]) -> None:
    schema.setdefault("$defs", {})["Symbol"] = _SYMBOL
    column["items"] = {"$ref": "#/$defs/Symbol"}


def _count_from_zero(schema: Any) -> None:
    """Say of every position in a table that it is not negative."""
    if isinstance(schema, dict):
        for entry in schema.get("prefixItems", []):
            if entry == {"type": "integer"}:
                entry["minimum"] = 0
        for value in schema.values():
            _count_from_zero(value)
    elif isinstance(schema, list):
        for value in schema:
            _count_from_zero(value)


def stub() -> str:
    """Return what type checkers read of the public names, which are imported at their first use."""
    lines = ["# Written by docs/generate.py: edit the table in __init__.py instead.", ""]
    lines += [f"from resolvent import {name} as {name}" for name in resolvent.PACKAGES]
    for module, names in resolvent.NAMES.items():
        lines += [f"from {module} import {name} as {name}" for name in names]
    lines += ["", "__version__: str", "", "__all__ = ["]
    constants_first = sorted(
        resolvent.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)
    )
    return "\n".join([*lines, *(f'    "{name}",' for name in constants_first), "]"]) + "\n"


def written() -> dict[Path, str]:
    """Return the text of each file that is generated."""
    texts = {DOCS / "reference" / "commands.md": commands(), **pages(DOCS / "reference")}
    texts[Path(resolvent.__file__).with_suffix(".pyi")] = stub()
    for name, schema in schemas().items():
        texts[DOCS / "formats" / f"{name}.schema.json"] = json.dumps(schema, indent=2) + "\n"
    return texts


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
