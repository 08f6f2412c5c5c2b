"""What is imported when: nothing that takes long before it is asked for."""

import inspect
import subprocess
import sys

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.cli import COMMANDS, OPTIONS, help_text
from resolvent.cli.flags import app, function_of
from resolvent.registration import WORLDS

SLOW = {"gymnasium", "msgspec", "numpy", "pyarrow", "rich", "typer"}


def printed(code: str) -> str:
    """What a fresh Python prints that runs this code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def imported_by(code: str) -> set[str]:
    shown = printed(f"import sys\n{code}\nprint('modules:', *sys.modules)")
    return set(shown.rpartition("modules:")[2].split())


def test_help_imports_nothing_slow():
    modules = imported_by("from resolvent.cli import main; main(['--help'])")
    assert not {name.partition(".")[0] for name in modules} & SLOW
    assert sorted(name for name in modules if name.startswith("resolvent")) == [
        "resolvent",
        "resolvent._util",
        "resolvent._util.startup",
        "resolvent._util.text",
        "resolvent.cli",
        "resolvent.errors",
        "resolvent.registration",
    ]


def test_importing_the_package_imports_nothing_slow():
    modules = imported_by("import resolvent")
    assert not {name.partition(".")[0] for name in modules} & SLOW
    assert {name for name in modules if name.startswith("resolvent")} == {
        "resolvent",
        "resolvent._util",
        "resolvent._util.startup",
        "resolvent.registration",
    }


def test_inference_does_not_import_drawing_or_exploration():
    modules = imported_by("from resolvent import infer, read_traces")
    left_out = ("baselines", "cli", "control", "display", "exploring", "reproduction")
    assert "resolvent.inference.infer" in modules
    assert not {f"resolvent.{room}" for room in left_out} & modules
    assert not {"gymnasium", "rich", "typer"} & modules


@pytest.mark.parametrize(
    "order",
    [
        "import resolvent, gymnasium",
        "import gymnasium, resolvent",
        "import resolvent.errors, gymnasium",
        "import resolvent.worlds, gymnasium",
        "import resolvent, importlib; importlib.reload(resolvent); import gymnasium",
    ],
)
def test_worlds_are_registered_in_either_order_of_imports(order):
    code = f"{order}\nprint(*(name for name in gymnasium.registry if 'resolvent/' in name))"
    assert printed(code).split() == [f"resolvent/{name}-v0" for name in WORLDS]


def test_gymnasium_is_imported_as_without_resolvent():
    code = "import gymnasium; print(type(gymnasium.__loader__), gymnasium.__spec__.origin)"
    assert printed(f"import resolvent\n{code}") == printed(code)


@pytest.mark.parametrize("name", WORLDS)
def test_registered_worlds_exist_at_their_entry_points(name):
    assert gym.spec(f"resolvent/{name}-v0").kwargs == WORLDS[name][1]
    assert type(gym.make(f"resolvent/{name}-v0").unwrapped).__module__.endswith(
        f"worlds.{WORLDS[name][0].partition(':')[0]}"
    )


def test_lazy_names_come_from_their_modules():
    for module, names in rs.NAMES.items():
        for name in names:
            assert getattr(rs, name) is getattr(sys.modules[module], name)
    assert {*rs.__all__, "__version__"} <= set(dir(rs))


def test_packages_are_attributes():
    assert printed("import resolvent; print(resolvent.machines.Basis.__name__)") == "Basis\n"


def test_all_names_at_once():
    code = "from resolvent import *; print(infer.__module__, plan.__module__)"
    assert printed(code) == "resolvent.inference.infer resolvent.planning.plan\n"


def test_an_unknown_name_raises():
    with pytest.raises(AttributeError, match="module 'resolvent' has no attribute 'infir'"):
        _ = rs.infir
    with pytest.raises(ImportError, match="infir"):
        from resolvent import infir  # noqa: F401


def test_quick_help_equals_the_help_of_commands():
    documented = {
        name: inspect.cleandoc(function_of(name).__doc__).partition("\n\n")[0].replace("\n", " ")
        for name in COMMANDS
    }
    assert documented == COMMANDS


def test_quick_help_names_existing_options():
    from typer.main import get_command

    command = get_command(app)
    context = command.make_context("resolvent", [], resilient_parsing=True)
    # Typer keeps the two flags for help in a set, in any order.
    flags = {frozenset(one.opts): one.help for one in command.get_params(context)}
    told = {frozenset(names.split(", ")): text for names, text in OPTIONS.items()}
    assert flags.keys() == told.keys()
    assert flags[frozenset(["--version"])] == OPTIONS["--version"]


@pytest.mark.parametrize("width", ["20", "60", "100", "300", "wide"])
def test_help_fits_the_terminal(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    text = help_text()
    assert all(name in text for name in COMMANDS)
    if width in {"60", "100"}:
        assert max(map(len, text.split("\n"))) <= int(width)


def test_help_after_other_arguments_is_the_same():
    from resolvent.cli import main

    code = "from resolvent.cli import main; main(%r)"
    assert printed(code % ["--help", "infer"]) == printed(code % ["--help"])
    assert main(["-h"]) == 0
