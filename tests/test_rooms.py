"""Data flows one way: a room imports only rooms above it (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

import resolvent

SOURCE = Path(resolvent.__file__).parent

# From the top down. A room may import any room on an earlier line, and itself.
ROOMS = [
    ["errors", "_core"],
    ["atomic_file", "installation", "wording"],
    ["traces"],
    ["samples"],
    ["reduction"],
    ["merging"],
    ["exact"],
    ["machines"],
    ["supplement", "replay", "options", "contradiction"],
    ["refinement", "result", "trust"],
    ["learning"],
    ["pipeline"],
    ["environments"],
    ["control"],
    ["baselines"],
    ["display"],
    ["reproduction"],
    ["cli"],
    ["__main__"],
]
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}

# Only what sits on top of everything may use the public namespace.
ON_TOP = {"__init__", "cli", "__main__"}


def room_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def files():
    return sorted(path for path in SOURCE.rglob("*.py"))


def imports(path):
    """The dotted names that a file imports from this package, wherever in it."""
    package = ["resolvent", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "resolvent":
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".") if node.module else []
            if node.level:
                parts = [*package[: len(package) - node.level + 1], *parts]
            if parts[0] != "resolvent":
                continue
            if len(parts) > 1:
                yield node.lineno, ".".join(parts)
            else:
                for alias in node.names:
                    known = (SOURCE / alias.name).is_dir() or alias.name in RANK
                    yield node.lineno, f"resolvent.{alias.name}" if known else "resolvent"


def wrongs(path):
    room = room_of(path)
    for line, name in imports(path):
        target = name.split(".")[1] if "." in name else None
        where = f"{path.relative_to(SOURCE)}:{line} imports {name}"
        if room in ON_TOP and (room == "__init__" or target is None):
            continue
        if target is None:
            yield f"{where}: only {', '.join(sorted(ON_TOP))} may use the public namespace"
        elif target not in RANK:
            yield f"{where}, which has no place in ROOMS"
        elif target != room and RANK[target] >= RANK[room]:
            yield f"{where}, which is not above it"


def test_there_is_something_to_look_at():
    assert len(files()) > 30
    assert {"traces", "merging", "machines"} <= {room_of(path) for path in files()}


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_above_it(path):
    assert room_of(path) in RANK or path.name == "__init__.py", f"give {path.name} a place in ROOMS"
    assert list(wrongs(path)) == []


@pytest.mark.parametrize(
    ("place", "code", "wrong"),
    [
        ("traces/x.py", "from resolvent.errors import TraceError", False),
        ("traces/x.py", "from resolvent.traces.trace import Trace", False),
        ("traces/x.py", "from . import trace", False),
        ("traces/x.py", "from resolvent.samples import NONE", True),
        ("traces/x.py", "import resolvent.machines", True),
        ("traces/x.py", "from ..machines import Machine", True),
        ("traces/x.py", "def late():\n    from resolvent.pipeline import infer", True),
        ("merging/x.py", "from resolvent import _core", False),
        ("merging/x.py", "from resolvent import infer", True),
        ("merging/x.py", "import resolvent as rs", True),
        ("cli/x.py", "import resolvent as rs", False),
        ("supplement.py", "from resolvent.pipeline import infer", True),
        ("traces/x.py", "from resolvent.attic import Trunk", True),
    ],
)
def test_the_test_itself(tmp_path, monkeypatch, place, code, wrong):
    monkeypatch.setattr("test_rooms.SOURCE", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(code, encoding="utf-8")
    assert bool(list(wrongs(path))) is wrong
