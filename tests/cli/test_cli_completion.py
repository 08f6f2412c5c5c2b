import pytest

from resolvent.cli import main
from resolvent.inference.strategy import STRATEGIES


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["re"], ["report", "reproduce"]),
        (["infer", "traces.jsonl", "--strategy", ""], list(STRATEGIES)),
        (["infer", "traces.jsonl", "--strategy", "e"], ["edsm", "exact"]),
        (["collect", "resolvent/Hou"], ["resolvent/House-v0", "resolvent/HouseInterference-v0"]),
        (["plan", "a", "b", "--environment", "resolvent/TM"], ["resolvent/TMaze-v0"]),
        (["reproduce", "ba"], ["baselines"]),
    ],
)
def test_names_are_completed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    expected: list[str],
) -> None:
    """What bash is told when the last of these words is to be completed."""
    monkeypatch.setenv("_RESOLVENT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["resolvent", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit) as ended:  # as the shell's own helper ends
        main([])
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out.split(), shown.err) == (0, expected, "")
