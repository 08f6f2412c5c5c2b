"""Data flows one way: a room imports only rooms above it (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

import resolvent

SOURCE = Path(resolvent.__file__).parent

# From the top down. A room may import any room on an earlier line, and itself.
ROOMS = [
    ["wording", "_core", "starting", "global_lock"],
    ["errors", "arithmetic"],
    ["arguments", "atomic_file", "by_value", "installation", "json_files", "limits", "progress"],
    ["registration"],
    ["workers"],
    ["notebook"],
    ["traces"],
    ["keeping"],
    ["senses"],
    ["samples"],
    ["reduction"],
    ["merging", "noise"],
    ["exact"],
    ["machines"],
    ["supplement", "replay", "options", "contradiction"],
    ["diagnosis", "events"],
    ["refinement", "result", "trust"],
    ["learning", "readings", "broken", "suspicion"],
    ["running", "doubts"],
    ["correction"],
    ["hypotheses"],
    ["pipeline"],
    ["holding_out"],
    ["environments"],
    ["control"],
    ["stable_baselines"],
    ["exploring"],
    ["baselines"],
    ["display"],
    ["reproduction"],
    ["cli"],
    ["__main__"],
]
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}

# A method may be the short way to a room below: it imports one function there and calls it.
SHORT_WAYS = {
    "machines/machine_set.py": {
        "Machines.score": "resolvent.replay",  # users ask machines how well they predict
        "Machines.difference": "resolvent.trust.telling_apart",  # and what tells them from others
    },
    "machines/exchange/edge_rewards.py": {
        "EdgeRewardMachine.from_pair": "resolvent.replay.edges_of_pair",  # the other constructor
    },
    "trust/experiment.py": {
        "Experiment.policy": "resolvent.control.planning.carrying_out",  # asked of it where it is
    },
    "result/inference_result.py": {  # a result is plain data; these save users three imports
        "InferenceResult.evidence": "resolvent.pipeline",
        "InferenceResult.update": "resolvent.pipeline",
        "InferenceResult.report": "resolvent.display.report",
    },
}

# Only what sits on top of everything may use the public namespace.
ON_TOP = {"__init__", "cli", "__main__"}


def room_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def files():
    return sorted(path for path in SOURCE.rglob("*.py"))


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


def short_ways(path, tree):
    """The imports that short ways are allowed, as nodes; their types may be named, too."""
    allowed = SHORT_WAYS.get(path.relative_to(SOURCE).as_posix(), {})
    if allowed:
        for node in filter(is_for_type_checkers, tree.body):
            yield from node.body
    methods = {
        f"{owner.name}.{method.name}": method
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
        if isinstance(method, ast.FunctionDef)
    }
    for name, target in allowed.items():
        # Past the docstring there is the import, and what is done with it.
        _, first, *rest = methods[name].body
        assert isinstance(first, ast.ImportFrom), f"{name} imports nothing: take it off the list"
        assert first.module == target
        assert len(first.names) == len(rest) == 1, f"{name} does more than forward"
        yield first


def imports(path):
    """The dotted names that a file imports from this package, but for those of short ways."""
    package = ["resolvent", *path.relative_to(SOURCE).parent.parts]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = list(short_ways(path, tree))
    for node in ast.walk(tree):
        if node in allowed:
            continue
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
        ("result.py", "from resolvent.pipeline import update", True),
        ("options.py", "if TYPE_CHECKING:\n    from resolvent.trust import Evidence", True),
    ],
)
def test_the_test_itself(tmp_path, monkeypatch, place, code, wrong):
    monkeypatch.setattr("test_rooms.SOURCE", tmp_path)
    path = tmp_path / place
    monkeypatch.setattr("test_rooms.SHORT_WAYS", {})
    path.parent.mkdir(exist_ok=True)
    path.write_text(code, encoding="utf-8")
    assert bool(list(wrongs(path))) is wrong


FORWARDS = """
class InferenceResult:
    def update(self, traces):
        "Take in more traces."
        from resolvent.pipeline import update
        {rest}
"""


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (FORWARDS.format(rest="return update(self, traces)"), None),
        (FORWARDS.format(rest="self.told = 1\n        return update(self, traces)"), "does more"),
        (FORWARDS.replace("from resolvent.pipeline import update", "pass"), "imports nothing"),
    ],
)
def test_a_short_way_only_forwards(tmp_path, monkeypatch, code, complaint):
    monkeypatch.setattr("test_rooms.SOURCE", tmp_path)
    allowed = {"result.py": {"InferenceResult.update": "resolvent.pipeline"}}
    monkeypatch.setattr("test_rooms.SHORT_WAYS", allowed)
    path = tmp_path / "result.py"
    path.write_text(code, encoding="utf-8")
    if complaint is None:
        assert list(wrongs(path)) == []
    else:
        with pytest.raises(AssertionError, match=complaint):
            list(wrongs(path))
