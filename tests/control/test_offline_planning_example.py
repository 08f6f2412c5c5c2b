"""The example tells what it promises."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "offline_planning.py"


def test_the_example_ends_paid(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    told = capsys.readouterr().out
    assert "in the corridor (memory 0, 0): left" in told
    assert "optimal: no way to act is worth more" in told
    assert "In the house itself: 10 episodes: mean return 1 " in told
