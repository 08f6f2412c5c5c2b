"""Every script in examples/ runs as it stands, and says something."""

import ast

import pytest

from pages import ROOT, missing_packages, run_script

EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_the_examples_exist():
    assert {"minigrid_memory.py", "minari_round_trip.py"} <= {script.name for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_examples_are_short_and_documented(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    assert ast.get_docstring(ast.parse(text))
    assert f"| `{script.name}` |" in README


@pytest.mark.parametrize(
    "script",
    # The documentation's page on Stable-Baselines3 runs what that script does.
    [pytest.param(one, marks=[pytest.mark.slow] * ("baselines" in one.name)) for one in SCRIPTS],
    ids=lambda script: script.name,
)
def test_an_example_runs(script, tmp_path):
    missing = missing_packages(script.read_text(encoding="utf-8"))
    (row,) = (line for line in README.splitlines() if line.startswith(f"| `{script.name}` |"))
    unknown = [name for name in missing if name not in row.rpartition("`pip install")[2]]
    assert unknown == [], "its imports must be installed, or stand in the README's last column"
    if missing:
        pytest.skip(f"{script.name} needs {', '.join(missing)}")
    done = run_script(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert list(tmp_path.iterdir()) == []
