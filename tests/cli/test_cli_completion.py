import os
import subprocess
import sys

import pytest


def completions(*words: str) -> list[str]:
    """What bash is told when the last of these words is to be completed."""
    process = subprocess.run(
        [sys.executable, "-c", "from resolvent.cli import main; main()"],
        env={
            **os.environ,
            "_RESOLVENT_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["resolvent", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stderr == ""
    return process.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["re"], ["report", "reproduce"]),
        (["infer", "traces.jsonl", "--strategy", ""], ["edsm", "rpni", "search", "exact"]),
        (["infer", "traces.jsonl", "--strategy", "e"], ["edsm", "exact"]),
        (["collect", "resolvent/Hou"], ["resolvent/House-v0", "resolvent/HouseInterference-v0"]),
        (["plan", "a", "b", "--environment", "resolvent/TM"], ["resolvent/TMaze-v0"]),
        (["reproduce", "ba"], ["baselines"]),
    ],
)
def test_names_are_completed(words: list[str], expected: list[str]) -> None:
    assert completions(*words) == expected
