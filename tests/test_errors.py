import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import make_dataclass, replace

import pytest

import resolvent as rs
from resolvent import errors
from resolvent.errors import ResolventError, StepLocation, TraceError, locating

KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
]

FIELDS = {
    "output": "reward",
    "locations": (StepLocation(0, 1), StepLocation(7, 4, "part-2.parquet", 3)),
    "values": (0.5, 2.0),
    "query": ((1, "hall"), "up"),
    "outcomes": ((2.0, 9), (0.5, 1)),
    "label_sequence": (frozenset({"key"}), frozenset({"bell", "door"})),
    "labels_read": True,
    "advice": "sleep on it",
    "timing": "lagged",
    "exact_remedy": True,
}

CONFLICT = make_dataclass("Conflict", FIELDS)(**FIELDS)

QUARREL = rs.TraceSet([rs.Trace(["hall", "hall"], [None, None], ["up"], [pay]) for pay in (1, 2)])


def test_all_errors_derive_from_one_class():
    assert len(KINDS) >= 7
    assert all(issubclass(kind, ResolventError | Warning) for kind in KINDS)
    assert all(getattr(rs.errors, kind.__name__) is kind for kind in KINDS)


def pickled(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301


@pytest.mark.parametrize("remade", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_survive_copies_and_pickles(kind, remade):
    fields = FIELDS if kind is rs.ContradictoryTraces else {}
    error = kind("no such room", *([CONFLICT] if fields else []))
    error.add_note("in the attic")
    again = remade(error)
    assert type(again) is kind
    assert again is not error
    assert (str(again), again.args) == ("no such room", ("no such room",))
    assert vars(again) == {**fields, "__notes__": ["in the attic"]}


def test_the_name_of_a_missing_package_survives_too():
    assert pickled(rs.errors.MissingExtra("no ray", name="ray")).name == "ray"


def test_errors_are_sent_between_processes():
    with pytest.raises(rs.ContradictoryTraces) as here:
        rs.infer(QUARREL, noise="none")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        there = processes.submit(rs.infer, QUARREL, noise="none").exception()
    assert type(there) is rs.ContradictoryTraces
    assert there.args == here.value.args
    assert vars(there) == vars(here.value)
    assert there.outcomes == ((1.0, 1), (2.0, 1))


@pytest.mark.parametrize(
    ("output", "machine"),
    [("observation", "transition"), ("reward", "reward"), ("cost", "cost")],
)
def test_errors_name_a_column_and_its_machine(output, machine):
    assert rs.ContradictoryTraces("", replace(CONFLICT, output=output)).machine == machine


def test_errors_are_also_what_python_would_raise():
    assert issubclass(rs.OptionError, ValueError)
    assert issubclass(rs.errors.MissingExtra, ImportError)


def test_locations_go_in_front_from_the_inside_out():
    raised = pytest.raises(TraceError, match=r"^a\.jsonl: line 3: too short$")
    with raised as caught, locating("a.jsonl"), locating("line 3"):
        raise TraceError("too short")
    assert isinstance(caught.value.__cause__, TraceError)


def test_other_errors_are_not_changed():
    with pytest.raises(KeyError, match="'x'"), locating("a.jsonl"):
        raise KeyError("x")
