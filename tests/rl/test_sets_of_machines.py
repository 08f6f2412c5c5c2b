"""Wrappers, plans and learners with other machines than a Transition and a Reward Machine.

The button: two rooms, of which one has a button. Its third press ends the episode;
nothing that is seen or paid tells how often it was pressed. "leave" in the other
room pays 1 and ends.
"""

import json
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import resolvent as rs
from resolvent.machines import Machines, machines_of
from resolvent.planning import plan_io as plan_files
from resolvent.planning.model import Model
from resolvent.rl.tracker import StateTracker, VectorStateTracker
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House

PRESS, GO, LEAVE = range(3)
GAMMA = 0.5


class Button(gym.Env[int, int]):
    """Presses have the reward `pays`, 0 by default; the third one ends the episode."""

    observation_names = ("button", "door")
    action_names = ("press", "go", "leave")
    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(3)

    def __init__(self, pays: float = 0.0, leaving: float = 1.0) -> None:
        self.pays, self.leaving = pays, leaving

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.room, self.presses = 0, 0
        return 0, {"labels": set(), "cost": 0}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        pressed = action == PRESS and self.room == 0
        self.presses += pressed
        reward, over = self.pays * pressed, self.presses == 3
        if action == GO:
            self.room = 1 - self.room
        elif action == LEAVE and self.room == 1:
            reward, over = self.leaving, True
        told = {"labels": {"click"} if pressed else set(), "cost": self.presses % 2}
        return self.room, reward, over, False, told


@pytest.fixture(scope="module")
def traces() -> TraceSet:
    return rs.collect(Button(), episodes=300, seed=0, columns=["cost"])


@pytest.fixture(scope="module")
def machines(traces: TraceSet) -> Machines:
    return rs.infer(traces).machines


# ---- an episode that ends by memory which neither TM nor RM has --------------


def test_inference_adds_a_machine_that_counts_presses(machines: Machines) -> None:
    states = {kind: machine.states for kind, machine in machines.items()}
    assert states == {"transition": 1, "reward": 1, "terminated": 3}
    assert not machines.termination.ambiguous


def test_the_plan_knows_which_press_ends(traces: TraceSet, machines: Machines) -> None:
    plan = rs.plan(machines, traces, gamma=GAMMA)
    model = plan.model
    assert {model.augmented_state(z) for z in range(len(model))} == {
        (room, 0, 0, presses) for room in Button.observation_names for presses in range(3)
    }
    press = model.actions.code("press")
    ends = {
        presses: bool(model.ends[model.find("button", 0, 0, presses), press])
        for presses in range(3)
    }
    assert ends == {0: False, 1: False, 2: True}
    assert (model.unknown_steps, model.sometimes_ends.any(), plan.is_optimal) == (0, False, True)
    assert plan.value == GAMMA  # go, then leave
    assert plan.action("button", 0, 0, 2) == "go"


def test_the_plan_presses_twice_if_presses_are_rewarded() -> None:
    # Two presses at 1 and then the door: 1 + ½ + ⅛·3. A third press instead: 1 + ½ + ¼.
    env = Button(pays=1.0, leaving=3.0)
    traces = rs.collect(env, episodes=300, seed=0)
    plan = rs.plan(rs.infer(traces), traces, gamma=GAMMA)
    assert plan.value == 1 + 0.5 + 0.125 * 3
    assert plan.is_optimal
    runs = plan.run(env, episodes=2)
    assert runs.discounted_returns.tolist() == [plan.value] * 2
    assert runs.lengths.tolist() == [4, 4]
    wrapped = rs.AugmentObservation(env, plan.machines)
    done = rs.collect(wrapped, episodes=1, policy=plan.policy_in(wrapped))[0].actions
    assert done == ("press", "press", "go", "leave")


def test_a_pair_alone_cannot_predict_the_end(traces: TraceSet, machines: Machines) -> None:
    pair = rs.infer(traces, outputs=["observation", "reward"]).machines
    assert len(pair.termination.ambiguous) == 1
    plan = rs.plan(pair, traces, gamma=GAMMA)
    assert plan.model.sometimes_ends.sum() == 1
    assert "sometimes end the episode" in str(plan)


def test_an_unobserved_ending_is_unknown_unless_constants_are_trusted() -> None:
    # "go" never ends, but was not tried after the second press.
    def pressed(*actions: int) -> Trace:
        env = Button()
        seen, info = env.reset()
        trace: dict[str, list[Any]] = {"seen": [seen], "told": [info["labels"]], "paid": []}
        over = False
        for action in actions:
            seen, paid, over, _, info = env.step(action)
            trace["seen"].append(seen)
            trace["told"].append(info["labels"])
            trace["paid"].append(paid)
        return Trace(trace["seen"], trace["told"], actions, trace["paid"], terminated=over)

    traces = TraceSet(
        [pressed(PRESS, PRESS, PRESS), pressed(GO, LEAVE), pressed(PRESS, GO, GO, PRESS, PRESS)]
    )
    machines = rs.infer(traces).machines
    assert machines["terminated"].states == 3

    def known(trust: bool) -> bool:
        model = Model.of(machines, traces, trust_constants=trust)
        here = model.find(0, 0, 0, 2)
        assert here is not None
        return bool(model.known[here, model.actions.code(GO)])

    assert (known(False), known(True)) == (False, True)


# ---- files, texts and refusals ---------------------------------------------


def test_a_plan_file_has_the_third_state(
    traces: TraceSet, machines: Machines, tmp_path: Any
) -> None:
    plan = rs.plan(machines, traces, gamma=GAMMA)
    plan.save(tmp_path / "plan.json")
    rows = json.loads((tmp_path / "plan.json").read_text())["policy"]
    assert list(rows[0])[-1] == "terminated_state"
    assert {row["terminated_state"] for row in rows} == {0, 1, 2}
    loaded = plan_files.load(tmp_path / "plan.json").policy
    assert [row.terminated_state for row in loaded] == [row["terminated_state"] for row in rows]


def test_an_action_needs_a_state_of_each_machine(traces: TraceSet, machines: Machines) -> None:
    plan = rs.plan(machines, traces, gamma=GAMMA)
    assert plan.action("button", 0, 0, 2) == "go"
    names = "and the integers transition_state, reward_state, terminated_state"
    for states in [(0, 0), (0, 0, 0, 0), (0, 0, "0")]:
        with pytest.raises(rs.OptionError, match=names):
            plan.action("button", *states)
    with pytest.raises(
        rs.errors.ModelError,
        match=r"button \(transition state 0, reward state 0, terminated state 9\)",
    ):
        plan.action("button", 0, 0, 9)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            ["reward"],
            "planning needs a Transition Machine, but there is only reward: "
            'infer with "observation" in outputs=',
        ),
        (
            ["observation", "cost"],
            "planning needs a Reward Machine, but there is only transition, cost: "
            'infer with "reward" in outputs=',
        ),
    ],
)
def test_planning_names_a_missing_machine(
    traces: TraceSet, outputs: list[str], message: str
) -> None:
    machines = rs.infer(traces, outputs=outputs).machines
    with pytest.raises(rs.errors.ModelError) as raised:
        rs.plan(machines, traces)
    assert str(raised.value) == message


def test_a_machine_for_another_column_changes_no_plan(traces: TraceSet) -> None:
    with_cost = ["observation", "reward", "terminated", "cost"]
    machines = rs.infer(traces, outputs=with_cost).machines
    assert list(machines) == ["transition", "reward", "cost", "terminated"]
    plan = rs.plan(machines, traces, gamma=GAMMA)
    assert list(plan.model.states) == ["transition", "reward", "terminated"]
    assert plan.model == rs.plan(rs.infer(traces), traces).model
    # The traces need not have that column.
    plain = rs.collect(Button(), episodes=300, seed=0)
    assert rs.plan(machines, plain, gamma=GAMMA).model == plan.model
    wrapped = rs.AugmentObservation(Button(), machines)
    policy = plan.policy_in(wrapped)
    assert rs.collect(wrapped, episodes=1, policy=policy)[0].actions == ("go", "leave")
    bare = rs.AugmentObservation(Button(), rs.infer(traces, outputs=["reward"]))
    with pytest.raises(rs.OptionError, match="does not show the state of the transition machine"):
        plan.policy_in(bare)


def test_a_plan_discretizes_as_the_machines_do(traces: TraceSet) -> None:
    chance = np.random.default_rng(0)
    read = TraceSet(
        [
            Trace(
                [
                    round(chance.uniform(0, 1) + 9 * (one == "door"), 3)
                    for one in trace.observations
                ],
                trace.labels,
                trace.actions,
                trace.rewards,
                terminated=trace.terminated,
                truncated=trace.truncated,
            )
            for trace in traces
        ]
    )
    machines = rs.infer(read, discretize="auto").machines
    plan = rs.plan(machines, read, gamma=GAMMA)
    named = rs.plan(rs.infer(traces).machines, traces, gamma=GAMMA)
    assert (len(plan.model), plan.value) == (len(named.model), named.value)


def test_stored_endings_ignore_machines_that_do_not_matter(traces: TraceSet) -> None:
    # Leaving is stored with the machines, together with the state of the cost, which is ignored.
    paid = rs.infer(traces, outputs=["observation", "reward", "cost"]).machines
    assert {len(one) for one in paid.termination.ends} == {5}
    named = TraceSet([Trace(["button", "door", "button"], [None] * 3, ["go", "go"], [0, 0])])
    model = Model.of(paid, named, trust_constants=True)
    here = model.find("door", 0, 0)
    assert here is not None
    assert model.ends[here, model.actions.code("leave")]
    assert model.sometimes_ends[model.find("button", 0, 0), model.actions.code("press")]


# ---- trackers and wrappers ---------------------------------------------------


def test_a_tracker_has_the_state_of_every_machine(machines: Machines) -> None:
    memory = StateTracker(machines)
    memory.reset(None)
    for label in ({"click"}, None, {"click"}):
        memory.step(label)
    assert memory.states == {"transition": 0, "reward": 0, "terminated": 2}
    many = VectorStateTracker(machines, 2)
    many.step(["click", None], np.ones(2, bool), np.zeros(2, bool))
    assert [column.tolist() for column in many.values] == [[0, 0], [0, 0], [1, 0]]


def test_a_tracker_without_a_transition_machine(traces: TraceSet) -> None:
    machines = rs.infer(traces, outputs=["reward", "cost"]).machines
    memory = StateTracker(machines)
    memory.reset(None)
    memory.step({"click"})
    assert memory.states == {"reward": 0, "cost": 1}


WAY = [GO, GO, PRESS, GO, GO, PRESS]
SEEN = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1)]
SEEN += [(1, 0, 0, 1), (0, 0, 0, 1), (0, 0, 0, 2)]


def walked(env: Any) -> tuple[list[Any], list[Any]]:
    observation, info = env.reset(seed=0)
    seen, told = [observation], [info]
    for action in WAY:
        observation, _, _, _, info = env.step(action)
        seen.append(observation)
        told.append(info)
    return seen, told


def test_every_mode_shows_all_states(machines: Machines) -> None:
    names = ["observation", "transition_state", "reward_state", "terminated_state"]
    env = rs.AugmentObservation(Button(), machines)
    seen, told = walked(env)
    assert list(env.observation_space.spaces) == names
    assert seen == [dict(zip(names, one, strict=True)) for one in SEEN]
    assert [info["terminated_state"] for info in told] == [one[3] for one in SEEN]
    env = rs.AugmentObservation(Button(), machines, mode="multidiscrete")
    assert env.observation_space == spaces.MultiDiscrete([2, 1, 1, 3])
    assert [tuple(row.tolist()) for row in walked(env)[0]] == SEEN
    env = rs.AugmentObservation(Button(), machines, mode="discrete")
    assert env.observation_space == spaces.Discrete(6)
    numbers = walked(env)[0]
    assert numbers == [o * 3 + e for o, _, _, e in SEEN]
    assert [env.decode(one) for one in numbers] == SEEN
    env = rs.AugmentObservation(Button(), machines, mode="flatten")
    hot = np.eye(3, dtype=np.int64)
    assert [row.tolist() for row in walked(env)[0]] == [
        [*hot[o][:2], 1, 1, *hot[e]] for o, _, _, e in SEEN
    ]


@pytest.mark.parametrize("mode", ["dict", "flatten", "multidiscrete", "discrete"])
def test_a_vector_wrapper_shows_all_states(machines: Machines, mode: Any) -> None:
    envs = gym.vector.SyncVectorEnv([Button] * 2)
    wrapped = rs.wrappers.VectorAugmentObservation(envs, machines, mode=mode)
    one = rs.AugmentObservation(Button(), machines, mode=mode)
    space = wrapped.observation_space
    observations, _ = wrapped.reset()
    expected = walked(one)[0]
    for step, shown in enumerate(expected):
        for found in gym.vector.utils.iterate(space, observations):
            assert spaces.utils.flatten(one.observation_space, found).tolist() == (
                spaces.utils.flatten(one.observation_space, shown).tolist()
            )
        if step < len(WAY):
            observations, *_ = wrapped.step(np.full(2, WAY[step]))


def test_a_reward_machine_alone_can_be_shown() -> None:
    machines = rs.infer(rs.collect(House(), episodes=200, seed=0), outputs=["reward"]).machines
    env = rs.AugmentObservation(House(), machines)
    assert set(env.observation_space.spaces) == {"observation", "reward_state"}
    observation, info = env.reset()
    assert observation == {"observation": 0, "reward_state": 0}
    assert "transition_state" not in info
    learned = rs.q_learning(env, episodes=300, evaluate_every=None)
    assert learned.engine == "python"  # tables are for a pair


# ---- basis of predictions ----------------------------------------------------


def two_states() -> Machines:
    """In "x" after a click, "ask" has another reward, and "rest" was not tried."""
    quiet = Trace(["x", "x", "x"], [None, None, None], ["ask", "rest"], [0, 0])
    loud = Trace(["x", "x", "x"], [None, "click", None], ["rest", "ask"], [0, 1])
    return rs.infer(TraceSet([quiet, loud])).machines


class Still(gym.Env[str, str]):
    """Shows "x", or "y" after "look"; every action except "ask" clicks."""

    observation_names = ("x", "y")
    action_names = ("ask", "rest", "look")
    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(3)

    def reset(self, **options: Any) -> Any:
        return 0, {"labels": set()}

    def step(self, action: Any) -> Any:
        return int(action == 2), 0.0, False, False, {"labels": {"click"} if action else set()}


def test_infos_have_the_basis_of_predictions() -> None:
    machines = two_states()
    assert (machines.transition.states, machines.reward.states) == (1, 2)
    actions = [0, 1, 1, 0, 2, 0]
    reward = ["observed", "observed", "generalized", "observed", "unseen", "unseen"]
    transition = ["observed"] * 4 + ["unseen"] * 2
    env = rs.AugmentObservation(Still(), machines, knowledge=True)
    assert "knowledge" not in env.reset()[1]
    told = [env.step(action)[4]["knowledge"] for action in actions]
    assert told == [
        {"transition": one, "reward": other} for one, other in zip(transition, reward, strict=True)
    ]
    envs = gym.vector.SyncVectorEnv([Still, Still])
    wrapped = rs.wrappers.VectorAugmentObservation(envs, machines, knowledge=True)
    assert "knowledge" not in wrapped.reset()[1]
    for action, one, other in zip(actions, transition, reward, strict=True):
        infos = wrapped.step(np.array([action, 0]))[4]
        assert infos["_knowledge"].tolist() == [True, True]
        assert infos["knowledge"]["transition"].tolist()[0] == one
        assert infos["knowledge"]["reward"].tolist() == [other, "observed"]
        assert infos["knowledge"]["_reward"].tolist() == [True, True]


# ---- learning ------------------------------------------------------------------


def test_a_learner_sees_the_third_state() -> None:
    env = Button(pays=1.0, leaving=3.0)
    traces = rs.collect(env, episodes=300, seed=0)
    machines = rs.infer(traces).machines
    model = Model.of(machines, traces)
    wrapped = rs.AugmentObservation(env, machines)
    learned = rs.q_learning(
        wrapped, episodes=400, gamma=GAMMA, model=model, counterfactual=True, shaping=True
    )
    assert learned.engine == "python"
    value = learned.evaluate(wrapped, episodes=1).value
    assert math.isclose(value, 1 + 0.5 + 0.125 * 3)


def test_the_model_must_be_of_the_visible_machines(traces: TraceSet, machines: Machines) -> None:
    house = House()
    alone = machines_of([house.machines().transition])
    with pytest.raises(
        rs.OptionError,
        match="engine='native': its tables cannot hold the machines transition",
    ):
        rs.q_learning(rs.AugmentObservation(house, alone), episodes=1, engine="native")
    pair = machines_of([machines.transition, machines.reward])
    with pytest.raises(
        rs.errors.ModelError,
        match="the model has the machines transition, reward, terminated, and the environment shows",
    ):
        rs.q_learning(
            rs.AugmentObservation(Button(), pair),
            model=Model.of(machines, traces),
            counterfactual=True,
        )
