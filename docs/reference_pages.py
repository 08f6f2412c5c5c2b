"""Signatures and docstrings of the package → sections of docs/reference/*.md.

A page says `<!-- resolvent.infer -->` where the section of `resolvent.infer` goes, and
`<!-- end -->` where it ends; what stands between is written anew.
"""

import ast
import dataclasses
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from resolvent.errors import MissingExtra

_SECTION = re.compile(r"^<!-- (resolvent[\w.]*) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
_LISTS = {"Args": "Parameters", "Attributes": "Attributes", "Raises": "Raises"}
_WIDTH = 88


def pages(folder: Path) -> dict[Path, str]:
    """Return the text of each page that has sections, all of them as they should be."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    return {
        path: _SECTION.sub(_written, text) for path, text in texts.items() if _SECTION.search(text)
    }


def named(text: str) -> list[str]:
    """Return what the sections of a page are about."""
    return [match[1] for match in _SECTION.finditer(text)]


def _written(match: re.Match[str]) -> str:
    name = match[1]
    try:
        found = _found(name)
    except MissingExtra:  # nobody can tell here: it stays as it is
        return match[0]
    return "\n".join([f"<!-- {name} -->", *_section(found, name), "<!-- end -->"])


def _found(name: str) -> Any:
    """Return the object of a dotted name; an object before a module of the same name."""
    words = name.split(".")
    for length in range(len(words) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(words[:length]))
            for word in words[length:]:
                found = getattr(found, word)
        except MissingExtra:
            raise
        except (ImportError, AttributeError):
            continue
        return found
    return importlib.import_module(name)


def _section(thing: Any, name: str) -> Iterator[str]:
    short = name.rpartition(".")[2]
    yield f"## {short}"
    yield ""
    if inspect.isclass(thing):
        if not issubclass(thing, BaseException) and _own_init(thing):
            yield from _signature(thing, short)
        yield from _prose(thing)
        if issubclass(thing, enum.Enum):
            yield from _choices(thing)
        for method, member in vars(thing).items():
            yield from _member(method, member, short)
    elif callable(thing):
        yield from _signature(thing, short)
        yield from _prose(thing)
    else:
        module = ast.parse(inspect.getsource(inspect.getmodule(type(thing))))
        yield from (_notes(module)[short], "")


def _choices(kind: type[enum.Enum]) -> Iterator[str]:
    """List the members of an enumeration, each with what stands below it in the source."""
    notes = _notes(ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0])
    for one in kind:
        told = f": {' '.join(notes[one.name].split())}" if one.name in notes else ""
        yield textwrap.fill(f"- `{one.name}` = `{one.value!r}`{told}", 100, subsequent_indent="  ")
    yield ""


def _notes(tree: Any) -> dict[str, str]:
    """Return the texts that stand below assignments, by the names that are assigned to."""
    notes = {}
    for above, below in pairwise(tree.body):
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if is_text and isinstance(above, ast.Assign | ast.AnnAssign):
            target = above.target if isinstance(above, ast.AnnAssign) else above.targets[0]
            notes[ast.unparse(target)] = inspect.cleandoc(below.value.value)
    return notes


def _own_init(thing: type) -> bool:
    return "__init__" in vars(thing)


def _member(name: str, member: Any, owner: str) -> Iterator[str]:
    if name.startswith("_"):
        return
    kind = ""
    if isinstance(member, property):
        yield f"### {owner}.{name}"
        yield ""
        yield from _prose(member.fget)
        return
    if isinstance(member, classmethod | staticmethod):
        kind, member = f"{type(member).__name__}: ", member.__func__
    if not inspect.isfunction(member) or not member.__doc__:
        return
    yield f"### {owner}.{name}"
    yield ""
    yield from _signature(member, f"{owner}.{name}", kind)
    yield from _prose(member)


def _signature(thing: Any, name: str, kind: str = "") -> Iterator[str]:
    """Write how something is called, its types as they stand in the source."""
    written = _annotations(thing)
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except ValueError:  # enumerations and such tell none that is of use
        return
    given = [one for one in parameters if one.name not in ("self", "cls")]
    shown, starred = [], False
    for one in given:
        if one.kind is one.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        text = f"{stars}{one.name}"
        if one.name in written:
            text += f": {written[one.name]}"
        if one.default is not one.empty:
            text += f" = {_default(one.default)}"
        shown.append(text)
    result = f" -> {written['return']}" if "return" in written else ""
    line = f"{kind}{name}({', '.join(shown)}){result}"
    if len(line) > _WIDTH:
        inner = "".join(f"    {one},\n" for one in shown)
        line = f"{kind}{name}(\n{inner}){result}"
    yield f"```text\n{line}\n```"
    yield ""


def _default(value: Any) -> str:
    made = type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
    return "…" if made else str(value) if callable(value) else repr(value)


def _annotations(thing: Any) -> dict[str, str]:
    if inspect.isclass(thing):
        if dataclasses.is_dataclass(thing):
            return {field.name: _type_text(field.type) for field in dataclasses.fields(thing)}
        thing = vars(thing).get("__init__")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    except (OSError, TypeError):
        return {}
    if not isinstance(tree, ast.FunctionDef):
        return {}
    asked = tree.args
    every = [*asked.posonlyargs, *asked.args, *asked.kwonlyargs, asked.vararg, asked.kwarg]
    found = {
        one.arg: ast.unparse(one.annotation)
        for one in every
        if one is not None and one.annotation is not None
    }
    if tree.returns is not None and tree.name != "__init__":
        found["return"] = ast.unparse(tree.returns)
    return {name: text.replace("'", "") if text[0] == "'" else text for name, text in found.items()}


def _type_text(kind: Any) -> str:
    text = kind if isinstance(kind, str) else getattr(kind, "__qualname__", str(kind))
    if not isinstance(kind, str) and "[" in str(kind):
        text = str(kind)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)


def _prose(thing: Any) -> Iterator[str]:
    """Write a docstring as Markdown: examples in fences, what it lists as lists."""
    text = inspect.cleandoc(thing.__doc__ or "").replace("\b\n", "")
    text = re.sub(
        rf"^({'|'.join(_LISTS)}):\n((?:(?: {{4}}.*)?\n?)+)",
        lambda match: _list(match[1], match[2]),
        text,
        flags=re.MULTILINE,
    )
    yield _EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n\n```\n", text).rstrip()
    yield ""


def _list(title: str, body: str) -> str:
    entries = re.split(r"^(?=\S)", textwrap.dedent(body).strip("\n"), flags=re.MULTILINE)
    lines = []
    for entry in filter(None, entries):
        name, _, told = " ".join(entry.split()).partition(": ")
        lines.append(
            textwrap.fill(
                f"- `{name}`: {told}", 100, subsequent_indent="  ", break_on_hyphens=False
            )
        )
    return f"{_LISTS[title]}:\n\n" + "\n".join(lines) + "\n\n"
