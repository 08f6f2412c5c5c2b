"""Values of flags and how commands are written down, as functions."""

from pathlib import Path

from resolvent.cli.commands.infer import _rare_setting
from resolvent.cli.commands.solve import _line
from resolvent.cli.flags import first_sentence, function_of, names_in, setting
from resolvent.cli.inputs import columns_to_read
from resolvent.cli.outputs import command, option_words
from resolvent.exploration.solution import Round
from resolvent.preprocess.discretize import Discretizer


def test_values_are_json_if_they_can_be():
    assert setting("length=20") == ("length", 20)
    assert setting("task=mail") == ("task", "mail")
    assert setting('keys=["north-west"]') == ("keys", ["north-west"])
    assert names_in("reward, cost") == ("reward", "cost")
    assert columns_to_read(["observation", "reward", "cost", "terminated"]) == ["cost"]


def test_rare_options_of_infer():
    assert _rare_setting("effort=2") == ("effort", 2)
    assert _rare_setting("discretize=auto") == ("discretize", "auto")
    assert _rare_setting("discretize=uniform:4") == ("discretize", Discretizer("uniform", 4))
    assert _rare_setting("discretize=uniform") == ("discretize", Discretizer("uniform"))


def test_commands_are_written_as_they_are_typed():
    assert command("show", Path("my machines.json")).endswith("show 'my machines.json'")
    values = {"quick": True, "set": ["length=5"], "reward_range": (0.0, 2.5), "on": None}
    words = ["--quick", "--set", "length=5", "--reward-range", "0", "2.5"]
    assert option_words({**values, "resume": False, "import": []}) == words


def test_a_command_is_a_function_of_its_name():
    assert function_of("check").__name__ == "check"


def test_the_help_of_a_flag_is_a_first_sentence():
    assert first_sentence('One of "auto" or `x`. The rest is for Python.') == "One of auto or x."


def test_the_progress_of_solve_is_one_line():
    now = Round(96, 3, {"transition": 1, "reward": 3}, 0.57, 14.0, "plan validation")
    assert _line(now) == (
        "96 steps, 1 × 3 states, value 0.57 (at most 14.6), next: plan validation"
    )
