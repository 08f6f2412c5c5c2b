import resolvent as rs
from resolvent.machines import Termination


def test_ends_or_not_or_sometimes():
    known = Termination(frozenset({("hall", 0, 1, "sit")}), frozenset({("attic", 0, 0, "sit")}))
    assert known.after("hall", 0, 1, "sit") is True
    assert known.after("hall", 0, 0, "sit") is False
    assert known.after("attic", 0, 0, "sit") is None


def test_an_augmented_state_holds_the_states_of_all_machines():
    known = Termination(frozenset({("hall", 0, 1, 2, "sit")}))
    assert known.after("hall", 0, 1, 2, "sit") is True
    assert known.after("hall", 0, 1, 1, "sit") is False


def test_text():
    assert str(Termination(frozenset({("hall", 0, 1, "sit")}))) == "1 step ends the episode"
    both = Termination(frozenset(), frozenset({("hall", 0, 1, "sit")}))
    assert "does not follow from observation, states and action" in str(both)


def walk(labels, rewards, terminated):
    steps = len(rewards)
    return rs.Trace([0] * (steps + 1), labels, ["go"] * steps, rewards, terminated=terminated)


def test_episodes_that_always_end_in_the_same_augmented_state():
    # The second "a" ends the episode: in state 1 of the reward machine, after one "a".
    traces = rs.TraceSet(
        [
            walk([None, "a", "a"], [0, 1], terminated=True),
            walk([None, None, "a", "a"], [0, 0, 1], terminated=True),
            walk([None, None], [0], terminated=False),
        ]
    )
    termination = rs.infer(traces).machines.termination
    assert termination == Termination(frozenset({(0, 0, 1, "go")}))


def test_episodes_that_end_sometimes():
    traces = rs.TraceSet(
        [walk([None, None], [0], terminated=True), walk([None, None, None], [0, 0], True)]
    )
    assert rs.infer(traces).machines.termination == Termination(
        frozenset(), frozenset({(0, 0, 0, "go")})
    )


def test_the_action_counts():
    traces = rs.TraceSet(
        [
            rs.Trace([0, 0, 0], [None] * 3, ["go", "sit"], [0, 0], terminated=True),
            rs.Trace([0, 0], [None] * 2, ["go"], [0], truncated=True),
        ]
    )
    assert rs.infer(traces).machines.termination.ends == {(0, 0, 0, "sit")}


def test_truncation_is_not_termination():
    traces = rs.TraceSet([rs.Trace([0, 0], [None] * 2, ["go"], [0], truncated=True)])
    assert rs.infer(traces).machines.termination == Termination()
