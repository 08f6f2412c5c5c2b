"""Environments named on the command line, with arguments of their own."""

import json

import pytest

from resolvent.cli import main


def collected(capsys, *words):
    assert main(["collect", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_environment_gets_its_arguments(tmp_path, capsys):
    shorter, longer = (
        collected(
            capsys, "resolvent/TMaze-v0", "-n", "50", "--set", f"length={length}", "-o", str(file)
        )
        for length, file in ((2, tmp_path / "2.jsonl"), (9, tmp_path / "9.jsonl"))
    )
    # Both cues, the corridor, the junction and both ends.
    assert (shorter["observations"], longer["observations"]) == (6, 13)


def test_text_and_lists_are_arguments_too(tmp_path, capsys):
    office = ("resolvent/OfficeCoffee-v0", "--set", "task=patrol", "-n", "2")
    assert collected(capsys, *office, "-o", str(tmp_path / "a.jsonl"))["traces"] == 2
    keys = ("resolvent/TwoKeys-v0", "--set", 'keys=["north-east", "south-west"]', "-n", "9")
    labels = collected(capsys, *keys, "-o", str(tmp_path / "b.jsonl"))["labels"]
    assert ["north-east key"] in labels
    assert ["north-west key"] not in labels


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("length", "--set length: write NAME=VALUE, such as world_seed=3"),
        ("=3", "--set =3: write NAME=VALUE"),
        ("height=3", "cannot make environment 'resolvent/TMaze-v0' with height: "),
        ("length=0", "length=0: use at least 1"),
        ("length=far", "cannot make environment 'resolvent/TMaze-v0' with length: "),
    ],
)
def test_what_an_environment_does_not_take_is_told(tmp_path, capsys, setting, says):
    file = tmp_path / "traces.jsonl"
    assert main(["collect", "resolvent/TMaze-v0", "--set", setting, "-o", str(file)]) == 2
    assert says in capsys.readouterr().err
    assert not file.exists()
