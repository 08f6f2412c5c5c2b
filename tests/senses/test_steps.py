"""What there is to tell of steps, worked out by hand."""

import numpy as np

from resolvent.senses.steps import steps_of
from resolvent.traces import Trace, TraceSet

days = TraceSet(
    [
        Trace(
            [(20.5, "dusk"), ("broken", "dusk"), (19.5, "night")],
            [None, "click", None],
            ["wait", "turn"],
            [0, 1],
            terminated=True,
        ),
        Trace([(18.5, "night"), (18.0, "night")], [None, None], ["wait"], [1]),
    ]
)


def test_each_number_before_at_and_after_a_step():
    (heat,) = steps_of(days, [(0,)], ["reward"], 10**6).numbers
    nothing = np.nan
    np.testing.assert_array_equal(heat.before, [nothing, 20.5, nothing])
    np.testing.assert_array_equal(heat.now, [20.5, nothing, 18.5])
    np.testing.assert_array_equal(heat.after, [nothing, 19.5, 18.0])


def test_what_else_is_seen_done_and_told():
    steps = steps_of(days, [(0,)], ["reward", "observation", "terminated"], 10**6)
    assert len(steps) == 3
    assert len(set(steps.rest.of_step.tolist())) == 3  # dusk, broken at dusk, night
    assert steps.actions.of_step.tolist() == [1, 0, 1]
    assert steps.labels.of_step.tolist() == [0, 1, 0]
    reward, ended, rest = steps.outputs
    assert reward.of_step.tolist() == [0, 1, 1]
    assert ended.of_step.tolist() == [0, 1, 0]
    assert rest.of_step[1] == rest.of_step[2] != rest.of_step[0]
    told_before = steps.told_before.of_step
    assert told_before[0] == told_before[2] != told_before[1]


def test_steps_beyond_the_most_are_left_out():
    assert len(steps_of(days, [(0,)], ["reward"], 2)) == 2


def test_outputs_of_many_numbers_are_put_into_cells():
    pay = np.random.default_rng(0).normal(size=400)
    trace = Trace(np.arange(401.0).tolist(), [None] * 401, "a" * 400, pay.tolist())
    (output,) = steps_of(TraceSet([trace]), [()], ["reward"], 10**6).outputs
    assert output.kinds == 8
    assert np.bincount(output.of_step).tolist() == [50] * 8
    assert pay[output.of_step == 0].max() < pay[output.of_step == 1].min()
