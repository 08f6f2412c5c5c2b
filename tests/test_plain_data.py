"""Everything public is plain data: it can be pickled, copied, compared, and sent to a process.

Every public name is in one of two tables here: how to make what it stands for or gives back,
or why that is no data. A new name without an entry fails.
"""

import copy
import multiprocessing
import pickle
from functools import cache, partial

import gymnasium as gym
import pytest

import resolvent as rs
from noisy_worlds import noisy_house
from own_strategies import AtLeast, MostAgreeing
from resolvent.errors import StepLocation
from resolvent.worlds import House


def house():
    return gym.make("resolvent/House-v0")


@cache
def traces():
    return rs.collect(house(), episodes=100, seed=0)


@cache
def result(**options):
    return rs.infer(traces(), options=rs.InferenceOptions(**options))


def pair():
    return result().machines


@cache
def paid_on_edges():
    """Machines of a world whose rewards are paid on edges, and its traces."""
    paying = rs.collect(House(goal="cyanroom"), episodes=200, seed=0)
    return rs.infer(paying).machines, paying


def edges():
    return rs.machines.EdgeRewardMachine.from_pair(*paid_on_edges())


def edges_of_file(folder):
    edges().save(folder / "edges.txt")
    return rs.machines.read_reward_machine(folder / "edges.txt")


def loaded(folder):
    pair().save(folder / "machines.json")
    return rs.load(folder / "machines.json")


def read(folder):
    traces().save(folder / "traces.parquet")
    return rs.read_traces(folder / "traces.parquet")


def as_table():
    columns = ("episode", "observation", "action", "reward", "label")
    return rs.read_table(traces().to_arrow(), order="step", **{name: name for name in columns})


def scanned(folder):
    file = folder / "many" / "a.parquet"
    if not file.exists():  # written again, it would no longer be what was scanned
        file.parent.mkdir()
        traces().save(file)
    return rs.scan_traces(folder / "many")


def learned():
    return rs.q_learning(rs.AugmentObservation(house(), pair()), episodes=30, seed=0)


def contradiction():
    quarrel = [rs.Trace(["hall", "hall"], [None, None], ["up"], [pay]) for pay in (1, 2)]
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(rs.TraceSet(quarrel), noise="none")
    assert caught.value.locations[0] == StepLocation(0, 0)
    return caught.value.with_traceback(None)


def trace():
    return rs.Trace([(0, 1), (1, 1)], [None, "key"], ["up"], [1], columns={"cost": [3]})


# What a name stands for, or what it gives back; those that take an argument get a folder.
MADE = {
    "ClusterError": lambda: rs.errors.ClusterError("nobody answers"),
    "ContradictoryTraces": contradiction,
    "Diagnosis": lambda: rs.diagnose(traces()[:5]),
    "Noise": lambda: rs.Noise(outcomes=True, labels=0.02, rewards="gaussian"),
    "LabelingFunction": lambda: rs.LabelingFunction("action+observation", {("up", 3): "climbed"}),
    "Discretizer": lambda: rs.Discretizer(bins=3).fit([0.5, 1.5, 2.5, 4.0]),
    "EdgeRewardMachine": edges,
    "Evidence": lambda: result().evidence,
    "Experiment": lambda: result().evidence.transition.experiments[0],
    "Finding": lambda: rs.diagnose(traces()[:5]).findings[0],
    "HoldoutScore": lambda: rs.holdout_score(result(outputs=("reward",)), traces()),
    "InferenceResult": result,
    "Basis": lambda: rs.Basis.GENERALIZED,
    "LabelTiming": lambda: rs.LabelTiming.LAGGED,
    "QTable": learned,
    "Limits": lambda: rs.config.Limits(labels=5),
    "Machine": lambda: result(outputs=("terminated",)).machines["terminated"],
    "MachinePair": pair,
    "Machines": lambda: result(outputs=("reward",)).machines,
    "DamagedFile": lambda: rs.errors.DamagedFile("a file is damaged"),
    "EnvironmentFailed": lambda: rs.errors.EnvironmentFailed("the motor is stuck"),
    "MissingExtra": lambda: rs.errors.MissingExtra("no ray", name="ray"),
    "ModelError": lambda: rs.errors.ModelError("a broken file"),
    "OptionError": lambda: rs.OptionError("no such option"),
    "InferenceOptions": lambda: rs.InferenceOptions(
        outputs=["reward"], trivial=["key"], strategy=AtLeast(2)
    ),
    "OutOfMemory": lambda: rs.errors.OutOfMemory("no memory left"),
    "Plan": lambda: rs.plan(pair(), traces()),
    "ResolventError": lambda: rs.ResolventError("something"),
    "ResumeWarning": lambda: rs.errors.ResumeWarning("a file is damaged"),
    "RewardMachine": lambda: pair().reward,
    "Solution": lambda: rs.solve(house(), budget=40),
    "Score": lambda: pair().score(traces()),
    "Strategy": lambda: AtLeast(3),
    "SpaceWarning": lambda: rs.errors.SpaceWarning("a part is no array"),
    "StorageError": lambda: rs.errors.StorageError("nobody answers"),
    "TableWarning": lambda: rs.errors.TableWarning("a row was dropped"),
    "TimeLimitReached": lambda: rs.errors.TimeLimitReached("too late"),
    "TooLarge": lambda: rs.errors.TooLarge("too many labels"),
    "Trace": trace,
    "TraceError": lambda: rs.TraceError("an empty file"),
    "TraceDataset": scanned,
    "TraceSet": lambda: rs.TraceSet([trace(), trace()]),
    "TransitionMachine": lambda: pair().transition,
    "UNSEEN": lambda: rs.UNSEEN,
    "baselines": lambda: rs.paper.baselines.lrm(paid_on_edges()[1][:20], most_states=3),
    "collect": traces,
    "diagnose": lambda: rs.diagnose(traces()),
    "evidence": lambda: rs.evidence(pair(), traces()),
    "holdout_score": lambda: rs.holdout_score(result(), traces(), share=0.4),
    "infer": lambda: result(strategy="search", supplement=False),
    "is_isomorphic": lambda: rs.is_isomorphic(pair().transition, pair().transition),
    "is_minimal": lambda: pair().transition.is_minimal(),
    "load": loaded,
    "plan": lambda: rs.plan(result(), traces(), gamma=0.9),
    "q_learning": learned,
    "read_log": lambda: rs.read_log(
        traces().to_arrow(), input="step", output={"room": "observation"}
    ),
    "read_reward_machine": edges_of_file,
    "read_table": as_table,
    "read_traces": read,
    "scan_traces": scanned,
    "solve": lambda: rs.solve(house(), budget=400),
    "to_dot": lambda: pair().transition.to_dot(),
    "to_mealy_dot": lambda: pair().transition.to_mealy_dot(),
    "to_mermaid": lambda: pair().transition.to_mermaid(),
    "to_png": lambda: pair().transition.to_png(),
    "to_svg": lambda: pair().transition.to_svg(),
    "to_text": lambda: pair().transition.to_text(),
}

NO_DATA = {
    "AugmentObservation": "an environment at work",
    "ShapeReward": "an environment at work",
    "Explorer": "at work in an environment",
    "VectorAugmentObservation": "environments at work",
    "VectorShapeReward": "environments at work",
    "report": "writes a file, and gives nothing back",
}

MORE = {
    "an update": lambda: rs.infer(traces()[:60]).update(traces()[60:]),
    "a proof": lambda: result(strategy="exact"),
    "what an own strategy found": lambda: result(strategy=MostAgreeing()),
    "an updated copy": lambda: sent(rs.infer(traces()[:60])).update(traces()[60:]),
    "a built-in strategy": lambda: rs.InferenceOptions(strategy="exact").strategy,
    "a hold-out": lambda: result().evidence.holdout,
    "what is weak": lambda: result().evidence.transition.weakness,
    "what tells states apart": lambda: list(result().evidence.transition.separations),
    "machines of a noisy world": lambda: noisy_house()[0],
    "a noisy machine": lambda: noisy_house()[0].transition,
    "how its answers spread": lambda: noisy_house()[0].transition.output_counts,
    "its score": lambda: noisy_house()[0].score(noisy_house()[1]),
    "a table of a machine": lambda: dict(pair().score(traces())),
    "an outcome of a peer": lambda: rs.paper.baselines.aalpy(traces()),
}


def made(name, folder):
    make = {**MADE, **MORE}[name]
    return make(folder) if make in (edges_of_file, loaded, read, scanned) else make()


def content(thing):
    """What two things of a kind are compared by, where that is not the thing itself."""
    if isinstance(thing, Exception):
        return type(thing), thing.args, vars(thing)
    if isinstance(thing, rs.TraceDataset):
        return vars(thing), [*thing]
    return thing


def sent(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


def test_every_public_name_has_an_entry():
    assert MADE.keys() & NO_DATA.keys() == set()
    assert set(rs.__all__) <= MADE.keys() | NO_DATA.keys()


@pytest.mark.parametrize("name", [*MADE, *MORE])
@pytest.mark.parametrize(
    "again",
    [*(partial(pickle.dumps, protocol=one) for one in (2, 5)), copy.copy, copy.deepcopy],
    ids=["pickle-2", "pickle-5", "copy", "deepcopy"],
)
def test_pickled_and_copied_values_are_equal(name, again, tmp_path):
    thing = made(name, tmp_path)
    other = again(thing)
    if isinstance(again, partial):
        other = pickle.loads(other)  # noqa: S301
    assert type(other) is type(thing)
    assert content(other) == content(thing)
    assert str(other) == str(thing)


@pytest.mark.parametrize("name", [*MADE, *MORE])
def test_used_values_can_be_pickled(name, tmp_path):
    """Looking at all that a thing tells may leave things behind in it."""
    thing = made(name, tmp_path)
    for attribute in dir(thing):
        if not attribute.startswith("_"):
            try:
                getattr(thing, attribute)
            except rs.ResolventError:
                continue
    assert content(sent(thing)) == content(thing)


def test_a_pickled_result_can_be_updated(tmp_path):
    """Evidence, updates and reports ask nothing of the process that inferred."""
    few = rs.infer(traces()[:60])
    back = sent(few)
    assert back.evidence == few.evidence
    updated = back.update(traces()[60:])
    assert updated.machines == few.update(traces()[60:]).machines
    assert updated.machines.provenance.traces_sha256 == traces().digest


def test_different_results_are_not_equal():
    assert rs.infer(traces()) == result()
    assert result(strategy="rpni") != result()
    assert rs.infer(traces()[:50]) != result()
    assert rs.InferenceOptions(strategy=AtLeast(2)) != rs.InferenceOptions(strategy=AtLeast(3))
    assert result().evidence != rs.evidence(pair(), traces()[:50])


def looked_at(things):
    """In another process: what came there, told in words, and sent back."""
    return {name: (type(one).__name__, str(one)) for name, one in things.items()}, things


def test_all_values_can_be_sent_to_a_spawned_process(tmp_path):
    things = {name: made(name, tmp_path) for name in (*MADE, *MORE)}
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        told, back = processes.apply(looked_at, (things,))
    for name, thing in things.items():
        assert told[name] == (type(thing).__name__, str(thing))
        assert content(back[name]) == content(thing)
