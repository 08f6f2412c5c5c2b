"""Imports go down one list of packages (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

import resolvent

SOURCE = Path(resolvent.__file__).parent

# A package may import those on earlier lines and on its own.
ORDER = [
    ["_core", "errors", "_util"],  # errors take their wording from _util, which raises them
    ["traces"],
    ["preprocess"],
    ["machines"],
    ["replay"],
    ["noise"],
    ["evaluation"],
    ["inference"],
    ["planning"],
    ["rl"],
    ["exploration"],
    ["viz"],
    ["worlds", "registration", "wrappers", "config"],
    ["paper"],
    ["cli"],
    ["__main__"],
]
RANK = {package: rank for rank, packages in enumerate(ORDER) for package in packages}

# Methods that forward to a function of a later package, so that users find it where they look for
# it. Each imports that function when it is called, and does nothing else.
FORWARDS = {
    "evaluation/experiments.py": {"Experiment.policy": "resolvent.rl.experiment_policy"},
    "inference/result.py": {"InferenceResult.report": "resolvent.viz.report.page"},
    "machines/machine.py": {
        "Machine.to_text": "resolvent.viz.text",
        "Machine.to_dot": "resolvent.viz.dot",
        "Machine.to_mermaid": "resolvent.viz.dot",
        "Machine.to_svg": "resolvent.viz.svg",
        "Machine.to_png": "resolvent.viz.svg",
        "Machine._repr_svg_": "resolvent.viz.svg",
    },
    "machines/machine_set.py": {
        "Machines.score": "resolvent.replay.score",
        "Machines.difference": "resolvent.evaluation.experiments",
        "Machines._repr_html_": "resolvent.viz.svg",
    },
    "planning/plan.py": {
        "Plan.run": "resolvent.rl.run_plan",
        "Plan.predict": "resolvent.rl.run_plan",
        "Plan.policy_in": "resolvent.rl.run_plan",
        "Plan._repr_html_": "resolvent.viz.notebook",
    },
    "rl/q_table.py": {"QTable._repr_html_": "resolvent.viz.notebook"},
    "traces/trace_set.py": {"TraceSet._repr_html_": "resolvent.viz.notebook"},
}

# A function that checks its arguments as a later package does, and imports that when it is called.
LATE = {"evaluation/diagnosis/diagnose.py": "resolvent.inference.options"}

# Only these may import the public namespace, and `resolvent` itself any package, when it is asked.
MAY_IMPORT_PUBLIC_NAMES = {"__init__", "cli", "__main__"}


def package_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def source_files():
    return sorted(SOURCE.rglob("*.py"))


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


def allowed_forwards(path, tree):
    """Yield the imports of the forwarding methods of a file; their types may be named, too."""
    forwards = FORWARDS.get(path.relative_to(SOURCE).as_posix(), {})
    if forwards:
        for node in filter(is_for_type_checkers, tree.body):
            yield from node.body
    methods = {
        f"{owner.name}.{method.name}": method
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
        if isinstance(method, ast.FunctionDef)
    }
    for name, module in forwards.items():
        # A docstring, the import, and the call.
        _, statement, *rest = methods[name].body
        assert isinstance(statement, ast.ImportFrom), f"{name} imports nothing: remove the entry"
        assert statement.module == module
        assert len(statement.names) == len(rest) == 1, f"{name} does more than forward"
        yield statement


def imports(path):
    """Yield line and dotted name of each import from this package that is not a forward."""
    package = ["resolvent", *path.relative_to(SOURCE).parent.parts]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = list(allowed_forwards(path, tree))
    late = LATE.get(path.relative_to(SOURCE).as_posix())
    for node in ast.walk(tree):
        if node in allowed:
            continue
        if isinstance(node, ast.ImportFrom) and node.col_offset and node.module == late:
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


def violations(path):
    package = package_of(path)
    for line, name in imports(path):
        target = name.split(".")[1] if "." in name else None
        where = f"{path.relative_to(SOURCE)}:{line} imports {name}"
        if package in MAY_IMPORT_PUBLIC_NAMES and (package == "__init__" or target is None):
            continue
        if target is None:
            allowed = ", ".join(sorted(MAY_IMPORT_PUBLIC_NAMES))
            yield f"{where}: only {allowed} may import the public namespace"
        elif target not in RANK:
            yield f"{where}, which has no place in ORDER"
        elif RANK[target] > RANK[package]:
            yield f"{where}, which comes later"


def test_source_files_exist():
    assert {"traces", "inference", "machines"} <= {package_of(path) for path in source_files()}


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_package_imports_only_earlier_ones(path):
    assert package_of(path) in RANK or path.name == "__init__.py", f"give {path.name} a place"
    assert list(violations(path)) == []


@pytest.mark.parametrize(
    ("file", "code", "is_wrong"),
    [
        ("traces/x.py", "from resolvent.errors import TraceError", False),
        ("traces/x.py", "from resolvent.traces.trace import Trace", False),
        ("traces/x.py", "from . import trace", False),
        ("traces/x.py", "from resolvent.preprocess import NONE", True),
        ("traces/x.py", "import resolvent.machines", True),
        ("traces/x.py", "from ..machines import Machine", True),
        ("traces/x.py", "def late():\n    from resolvent.inference import infer", True),
        ("inference/x.py", "from resolvent import _core", False),
        ("inference/x.py", "from resolvent import infer", True),
        ("inference/x.py", "import resolvent as rs", True),
        ("cli/x.py", "import resolvent as rs", False),
        ("traces/x.py", "from resolvent.attic import Trunk", True),
        ("noise/x.py", "if TYPE_CHECKING:\n    from resolvent.inference import Fit", True),
    ],
)
def test_this_test_detects_a_wrong_import(tmp_path, monkeypatch, file, code, is_wrong):
    monkeypatch.setattr("test_packages.SOURCE", tmp_path)
    monkeypatch.setattr("test_packages.FORWARDS", {})
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(code, encoding="utf-8")
    assert bool(list(violations(path))) is is_wrong


FORWARD = """
class InferenceResult:
    def report(self, path):
        "Write the report."
        from resolvent.viz.report import report
        {rest}
"""


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (FORWARD.format(rest="return report(self, path)"), None),
        (FORWARD.format(rest="self.seen = 1\n        return report(self, path)"), "does more"),
        (FORWARD.replace("from resolvent.viz.report import report", "pass"), "imports nothing"),
    ],
)
def test_modules_that_forward_names_contain_only_imports(tmp_path, monkeypatch, code, complaint):
    monkeypatch.setattr("test_packages.SOURCE", tmp_path)
    forwards = {"result.py": {"InferenceResult.report": "resolvent.viz.report"}}
    monkeypatch.setattr("test_packages.FORWARDS", forwards)
    path = tmp_path / "result.py"
    path.write_text(code, encoding="utf-8")
    if complaint is None:
        assert list(violations(path)) == []
    else:
        with pytest.raises(AssertionError, match=complaint):
            list(violations(path))
