"""The command line as a stranger meets it: arguments in, exit code and two streams out."""

from pathlib import Path

import pytest
from cli_outcome import Outcome, Run

from resolvent.cli import main
from resolvent.inference import cross_validation

collect_ignore = ["conftest.py"]  # of doctests, for there is another of that name


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have traces held out however long it takes: that depends on the machine."""
    monkeypatch.setattr(cross_validation, "MAX_SECONDS", 1e6)
    monkeypatch.setattr(cross_validation, "_MIN_TIME_LIMIT", 1e6)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of the house, enough to find both its machines."""
    path = tmp_path_factory.mktemp("house") / "house.jsonl"
    assert main(["collect", "resolvent/House-v0", "-n", "200", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def machines(house: Path) -> Path:
    path = house.with_name("machines.json")
    assert main(["infer", str(house), "-o", str(path)]) == 0
    return path
