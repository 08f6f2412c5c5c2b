"""Every notebook in examples/ runs as it stands, shows what it says, and holds no output."""

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

EXAMPLES = Path(__file__).parents[1] / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")

BEST = ["left", "right", "up", "down", "right", "sit"]

SHOWN = {
    "house.ipynb": [
        "TraceSet(500 traces, 15402 steps, ",
        "InferenceResult(states: transition 2, reward 2; ",
        "MachinePair(",
        "['corridor', 'cyanroom']",
        "Evidence(500 traces, ",
        "Score(transition right 3084, wrong 0, unseen 0; reward right 3084, wrong 0, unseen 0)",
        "QTable(9 observations, ",
        "TraceSet(1 traces, 6 steps, ",
    ],
    "offline_planning.ipynb": [
        "Plan(value 0.7738, at most ",
        "Plan(value 0.7738, optimal, ",
        "Runs(10 episodes, mean return 1, 0 contradictions)",
        "Runs(5 episodes, mean return 0, 5 contradictions)",
        "Runs(5 episodes, mean return 1, 0 contradictions)",
    ],
}
"""How the text of each output begins."""

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_the_notebooks_exist():
    assert [path.name for path in NOTEBOOKS] == sorted(SHOWN)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_short_and_without_output(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert f"| `{path.name}` |" in README
    assert notebook.cells[0].source.startswith("# ")
    assert sum(len(cell.source.splitlines()) for cell in code_cells(notebook)) < 60
    for cell in code_cells(notebook):
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(here)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=place).execute()
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    texts = [output["data"]["text/plain"] for output in outputs]
    assert len(texts) == len(SHOWN[path.name])
    for text, start in zip(texts, SHOWN[path.name], strict=True):
        assert text.startswith(start)
    shown = [output["data"].get("text/html", "") for output in outputs]
    assert all(html.startswith("<div") for html in shown if html)
    if path.name == "house.ipynb":  # what was learned is the way that is paid
        assert all(f">{action}</td>" in shown[-1] for action in BEST)
    assert list(here.iterdir()) == []
