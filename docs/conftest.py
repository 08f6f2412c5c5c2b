"""The examples of these pages run in a folder of their own, and so may write files."""

import importlib.util

import pytest

# Not a page, and there is another of that name.
collect_ignore = ["conftest.py"]
if importlib.util.find_spec("griffe") is None:
    collect_ignore.append("fence_examples.py")


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
