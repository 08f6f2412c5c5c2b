"""The examples of these pages run in a folder of their own, and so may write files."""

import pytest

# Not a page, and there is another of that name.
collect_ignore = ["conftest.py"]
# Written from docstrings, whose examples run where they come from.
collect_ignore += [
    f"reference/{page}.md"
    for page in (
        "acting",
        "baselines",
        "errors",
        "inference",
        "machines",
        "stable-baselines",
        "traces",
    )
]


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
