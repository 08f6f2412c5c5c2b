"""Models of small worlds, by hand and by a walk in plain Python."""

import math
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resolvent as rs
from planning_oracles import naive_model
from resolvent._util.parallel import Threads
from resolvent.planning.model import Model
from resolvent.planning.step_table import LabelModel
from resolvent.planning.steps import StateSpace, StepPass, Steps
from resolvent.preprocess.timing import LabelTiming
from resolvent.replay.corpus import run_pass, scan_corpus
from resolvent.replay.replaying import MachineTables
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House, PhaseGrid
from strategies import infer_options, world_traces


@pytest.fixture(scope="module")
def house() -> TraceSet:
    return rs.collect(House(), episodes=200, seed=0)


def stepped(model: Model, situation: tuple[Any, int, int], action: Any) -> Any:
    """What the model says of a step, as the oracle says it."""
    here, code = model.find(*situation), model.actions.code(action)
    assert here is not None
    if not model.known[here, code]:
        assert math.isnan(model.reward[here, code])
        assert model.next_state[here, code] == -1
        assert not model.ends[here, code]
        return None
    following = int(model.next_state[here, code])
    assert (following < 0) == model.ends[here, code]
    return model.reward[here, code], None if following < 0 else model.augmented_state(following)


@settings(deadline=None, max_examples=150)
@given(world_traces(), infer_options, st.booleans())
def test_the_model_equals_a_walk_in_plain_python(traces, options, trust) -> None:
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    model = Model.of(machines, traces, trust_constants=trust)
    expected, starts = naive_model(machines, traces, trust)
    assert {model.augmented_state(z) for z in range(len(model))} == set(expected)
    for state, steps in expected.items():
        assert {a: stepped(model, state, a) for a in steps} == steps
    begun = zip(
        map(model.augmented_state, model.starts.tolist()), model.start_counts.tolist(), strict=True
    )
    assert dict(begun) == starts


@settings(deadline=None, max_examples=60)
@given(world_traces(), infer_options)
def test_the_model_of_a_part_of_the_traces(traces, options) -> None:
    machines = rs.infer(traces, options=rs.InferenceOptions(**options)).machines
    for part in (traces[:1], traces[1:]):
        if not len(part):
            continue
        model = Model.of(machines, part, trust_constants=True)
        for z in range(len(model)):
            for code, action in enumerate(model.actions):
                if model.known[z, code]:
                    observations, *states = model.augmented_state(z)
                    by_kind = dict(zip(machines, states, strict=True))
                    predictions = machines.predict_all(observations, action, by_kind)
                    assert predictions["reward"] == model.reward[z, code]
                    assert predictions.get("terminated", model.ends[z, code]) == model.ends[z, code]
                    if not model.ends[z, code]:
                        after = model.augmented_state(int(model.next_state[z, code]))
                        assert after[0] == predictions["transition"]


def test_the_house_by_hand(house: TraceSet) -> None:
    model = Model.of(rs.infer(house).machines, house)
    keyless = {("corridor", 0, 0), ("limegreenroom", 0, 0)}
    with_key = {("corridor", 1, 0), ("orangeroom", 1, 0), ("limegreenroom", 1, 0)}
    relieved = {(room, 1, 1) for room in House.observation_names}
    assert {model.augmented_state(z) for z in range(len(model))} == keyless | with_key | relieved
    assert model.unknown_steps == 0
    assert [model.augmented_state(z) for z in model.starts.tolist()] == [("corridor", 0, 0)]
    assert model.start_counts.tolist() == [200]
    assert model.reward_range == (0.0, 1.0)
    assert stepped(model, ("corridor", 0, 0), "up") == (0.0, ("corridor", 0, 0))
    assert stepped(model, ("corridor", 0, 0), "left") == (0.0, ("orangeroom", 1, 0))
    assert stepped(model, ("corridor", 1, 0), "up") == (0.0, ("cyanroom", 1, 1))
    assert stepped(model, ("limegreenroom", 0, 0), "sit") == (0.0, None)
    assert stepped(model, ("limegreenroom", 1, 1), "sit") == (1.0, None)


def test_an_unreachable_augmented_state_has_no_number(house: TraceSet) -> None:
    model = Model.of(rs.infer(house).machines, house)
    assert model.find("cyanroom", 0, 0) is None
    assert model.find("attic", 0, 0) is None
    assert model.find("corridor", 7, 0) is None


def ring(*actions: str) -> Trace:
    """Rooms 0, 1, 2 in a ring; only going on from 2 to 0 shows "lap", and 2 laps open the gate.

    "leave" in room 0 pays 1 and ends once the gate is open, and does nothing before.
    """
    room, laps = 0, 0
    rooms, labels, rewards = [0], [None], []
    for action in actions:
        before, reward = room, 0.0
        if action == "leave":
            reward = float(room == 0 and laps >= 2)
        else:
            room = (room + (1 if action == "on" else 2)) % 3
        lap = before == 2 and action == "on"
        laps += lap
        rooms.append(room)
        labels.append("lap" if lap else None)
        rewards.append(reward)
    return Trace(rooms, labels, actions, rewards, terminated=bool(rewards[-1]))


LAP = ["on"] * 3


def test_labels_that_depend_on_the_step() -> None:
    traces = TraceSet(
        [
            ring(*LAP, "leave", *LAP, "leave"),
            ring("leave", "on", "back", "leave", "back", "on"),
            ring("on", "leave", "on", "leave", "on", "on", "back", "leave", "back", "back"),
            ring(*LAP, *LAP, "on", "back", "leave"),
        ]
    )
    pair = rs.infer(traces).machines
    assert (pair.transition.states, pair.reward.states) == (1, 3)
    model = Model.of(pair, traces)
    once, twice = (pair.reward.run([{"lap"}] * laps) for laps in (1, 2))
    assert isinstance(once, int)
    assert isinstance(twice, int)
    assert stepped(model, (2, 0, 0), "on") == (0.0, (0, 0, once))
    assert stepped(model, (1, 0, 0), "back") == (0.0, (0, 0, 0))
    assert stepped(model, (2, 0, once), "on") == (0.0, (0, 0, twice))
    assert stepped(model, (0, 0, twice), "leave") == (1.0, None)
    # No trace continues from 1 after two laps; with its constant reward 0 trusted, its label is known.
    assert stepped(model, (1, 0, twice), "on") is None
    trusting = Model.of(pair, traces, trust_constants=True)
    assert stepped(trusting, (1, 0, twice), "on") == (0.0, (2, 0, twice))


def lamp(*actions: str) -> Trace:
    """ "press" shows "lit" and "dark" in turn and leads to 0; "look" leads to 1 if lit, else 2."""
    lit, rooms, labels = False, [0], [None]
    for action in actions:
        if action == "press":
            lit = not lit
        rooms.append(0 if action == "press" else 1 if lit else 2)
        labels.append(None if action == "look" else "lit" if lit else "dark")
    return Trace(rooms, labels, actions, [0] * len(actions))


def test_labels_that_depend_on_the_state() -> None:
    first = ("press", "look") * 2 + ("press", "press", "look") * 2
    second = ("look", "look", "press", "press", "look", "press", "look", "look", "press", "look")
    traces = TraceSet([lamp(*first), lamp(*second)])
    pair = rs.infer(traces).machines
    assert pair.transition.states == 2
    model = Model.of(pair, traces)
    assert stepped(model, (0, 0, 0), "press") == (0.0, (0, 1, 0))
    assert stepped(model, (0, 1, 0), "press") == (0.0, (0, 0, 0))
    assert stepped(model, (0, 1, 0), "look") == (0.0, (1, 1, 0))


def test_unpredictable_labels_with_the_same_transitions_do_not_matter() -> None:
    traces = TraceSet([Trace([0, 0, 0, 0], [None, "a", "b", "a"], ["go"] * 3, [0, 0, 0])])
    model = Model.of(rs.infer(traces).machines, traces)
    assert model.outcomes is None
    assert stepped(model, (0, 0, 0), "go") == (0.0, (0, 0, 0))


def test_unpredictable_labels_make_a_stochastic_model() -> None:
    # Stopping has a reward after a and none after b; which of them is read cannot be predicted.
    def tossed(label: str) -> Trace:
        reward = float(label == "a")
        return Trace([0, 0, 1], [None, label, None], ["go", "stop"], [0, reward], terminated=True)

    at_once = Trace([0, 1], [None, None], ["stop"], [0.5], terminated=True)
    traces = TraceSet([tossed("a"), tossed("b"), tossed("a"), tossed("a"), at_once])
    machines = rs.infer(traces).machines
    assert machines.reward.states == 3
    model = Model.of(machines, traces)
    assert model.outcomes is not None
    go = model.find(0, 0, 0) * len(model.actions) + model.actions.code("go")
    assert model.outcomes.frequency[model.outcomes.step == go].tolist() == [0.75, 0.25]
    assert len(model.outcomes.next_states(go)) == 2
    plan = rs.plan(machines, traces)
    assert plan.expected is not None
    assert plan.expected[plan.model.starts] == pytest.approx(0.95 * 0.75)
    assert not plan.is_optimal
    assert plan.confidence == 0.95


def test_lagged_labels_must_depend_on_the_observation() -> None:
    def passed(sign: str, paid: float) -> Trace:
        return Trace(
            [0, 1, 2, 2], [None, sign, None, None], ["go", "go", "take"], [0, 0, paid], True
        )

    traces = TraceSet([passed("a", 1), passed("b", 0)])
    pair = rs.infer(traces, timing="lagged").machines
    assert pair.reward.states == 2
    with pytest.raises(
        rs.errors.ModelError, match=r"timing lagged .* depend on the observation alone"
    ):
        Model.of(pair, traces)


def test_lagged_labels_with_the_same_transitions_are_merged() -> None:
    traces = TraceSet([ring(*LAP, "leave", "back", "back", "back")])
    pair = rs.infer(traces, timing="lagged").machines
    assert pair.transition.states == pair.reward.states == 1
    assert len(Model.of(pair, traces)) == len(traces.observations)


def test_an_ignored_first_label_has_no_effect() -> None:
    # Cell 1 is marked, but an episode that begins there does not show it.
    traces = TraceSet(
        [
            Trace([0, 1, 0, 0], [None, "mark", None, None], ["go", "go", "stay"], [0, 0, 0]),
            Trace([1, 0], [None, None], ["go"], [0]),
        ]
    )

    def depends_on(timing: LabelTiming) -> str:
        pair = rs.infer(traces, timing=timing).machines
        corpus = scan_corpus(pair, traces, Threads())
        space = StateSpace.of(pair, corpus.alphabets)
        tables = MachineTables.of(pair, corpus.alphabets)
        taken = run_pass(corpus, StepPass(tables, by_reward=True))
        steps = Steps.of(taken, corpus.alphabets, space)
        transitions = [
            machine.transitions_for(steps.labels, others=True) for machine in pair.values()
        ]
        return LabelModel.of(steps, timing, space, transitions).by

    assert depends_on(LabelTiming.CURRENT) == "next observation"
    assert depends_on(LabelTiming.CURRENT_WITH_INITIAL) == "step"
    assert depends_on(LabelTiming.LAGGED) == "observation"


def test_machines_of_another_world_are_refused(house: TraceSet) -> None:
    other = rs.collect(gym.make("resolvent/HouseInterference-v0"), episodes=20, seed=0)
    with pytest.raises(
        rs.errors.ModelError, match=r"trace \d+, step \d+: .*these are not its machines"
    ):
        Model.of(rs.infer(house).machines, other)


def walk(*steps: tuple[Any, str, float], last: Any, over: bool) -> Trace:
    observations = [*(step[0] for step in steps), last]
    return Trace(
        observations,
        [{"event"} if o == "e" else None for o in observations],
        [step[1] for step in steps],
        [step[2] for step in steps],
        terminated=over,
    )


def test_constant_outputs_count_only_where_these_traces_query_them() -> None:
    left = walk(("x", "left", 1.0), last="y", over=True)
    right = walk(("x", "right", 0.0), ("x", "right", 0.0), last="x", over=False)
    machines = rs.infer(TraceSet([left, right])).machines
    assert stepped(Model.of(machines, TraceSet([left, right])), ("x", 0, 0), "left") == (1.0, None)
    # The machines have seen it, but not in the traces that are planned from.
    assert stepped(Model.of(machines, TraceSet([right])), ("x", 0, 0), "left") is None
    trusting = Model.of(machines, TraceSet([right]), trust_constants=True)
    assert stepped(trusting, ("x", 0, 0), "left") == (1.0, None)


def test_an_untried_step_ends_if_its_observation_and_action_always_ended() -> None:
    # Both states of the reward machine meet "x"; after the event, "stop" there was not tried.
    traces = TraceSet(
        [
            walk(("x", "stop", 0), last="x", over=True),
            walk(
                ("x", "pay", 0),
                ("x", "go", 0),
                ("e", "go", 0),
                ("x", "pay", 1),
                last="x",
                over=False,
            ),
        ]
    )
    pair = rs.infer(traces).machines
    assert pair.reward.states == 2
    assert stepped(Model.of(pair, traces), ("x", 0, 1), "stop") is None  # its reward is unknown
    trusting = Model.of(pair, traces, trust_constants=True)
    assert stepped(trusting, ("x", 0, 1), "stop") == (0.0, None)


def test_an_untried_step_is_unknown_if_similar_steps_sometimes_ended() -> None:
    def traces(over: bool) -> TraceSet:
        after = [("x", "go", 0), ("e", "go", 0), ("x", "pay", 1)]
        twice = [*after, ("x", "go", 0), ("e", "go", 0), ("x", "pay", 2)]
        return TraceSet(
            [
                walk(("x", "stop", 0), last="x", over=over),
                walk(("x", "pay", 0), *after, ("x", "stop", 0), last="x", over=False),
                walk(*twice, last="x", over=False),
            ]
        )

    never = traces(False)
    pair = rs.infer(never).machines
    model = Model.of(pair, never, trust_constants=True)
    assert stepped(model, ("x", 0, 2), "stop") == (0.0, ("x", 0, 2))
    sometimes = traces(True)
    model = Model.of(rs.infer(sometimes).machines, sometimes, trust_constants=True)
    assert stepped(model, ("x", 0, 0), "stop") == (0.0, None)
    assert stepped(model, ("x", 0, 1), "stop") == (0.0, ("x", 0, 1))
    assert stepped(model, ("x", 0, 2), "stop") is None
    assert not model.sometimes_ends.any()


def test_a_step_that_ends_only_sometimes_is_unknown_and_marked() -> None:
    step = ("x", "go", 0.0)
    traces = TraceSet([walk(step, last="x", over=True), walk(step, step, last="x", over=False)])
    model = Model.of(rs.infer(traces).machines, traces)
    assert stepped(model, ("x", 0, 0), "go") is None
    assert model.sometimes_ends.tolist() == [[True]]


def test_endings_of_machines_and_traces_are_combined() -> None:
    step = ("x", "go", 0.0)
    ending = TraceSet([walk(step, last="x", over=True)])
    going_on = TraceSet([walk(step, step, last="x", over=False)])
    pair = rs.infer(ending).machines
    assert stepped(Model.of(pair, ending), ("x", 0, 0), "go") == (0.0, None)
    assert Model.of(pair, going_on).sometimes_ends.tolist() == [[True]]


def test_symbols_known_only_to_machines_or_only_to_traces(house: TraceSet) -> None:
    pair = rs.infer(house).machines
    short = TraceSet([Trace(["corridor", "attic"], [None, None], ["climb"], [0])])
    model = Model.of(pair, short, trust_constants=True)
    assert set(model.observations) == {*House.observation_names, "attic"}
    assert set(model.actions) == {*House.action_names, "climb"}
    assert stepped(model, ("corridor", 0, 0), "climb") is None
    # The traces have no label of the orangeroom, so that the step to it is unknown.
    assert stepped(model, ("corridor", 0, 0), "left") is None


def test_an_unknown_first_label_is_refused() -> None:
    traces = TraceSet([Trace([0, 1, 0], ["cue", None, None], ["go", "go"], [0, 1])])
    pair = rs.infer(traces, timing=LabelTiming.CURRENT_WITH_INITIAL).machines
    other = TraceSet([Trace([0, 1], ["other", None], ["go"], [0])])
    with pytest.raises(
        rs.errors.ModelError, match="trace 0 begins with label other, for which the machines"
    ):
        Model.of(pair, other)


def test_no_traces_are_refused(house: TraceSet) -> None:
    with pytest.raises(rs.errors.ModelError, match="there are no traces"):
        Model.of(rs.infer(house).machines, TraceSet())


def test_traces_of_another_world_are_refused() -> None:
    pair = rs.infer(rs.collect(House(), episodes=50, seed=0)).machines
    with pytest.raises(
        rs.errors.ModelError, match=r"know no observation of the traces, such as \(0, 0\)"
    ):
        Model.of(pair, rs.collect(PhaseGrid(3), episodes=5, seed=0))
