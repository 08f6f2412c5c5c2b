"""Worlds with a third column, small enough to say by hand what their machines must answer."""

import numpy as np

import resolvent as rs


def with_cost(traces, event):
    """Let a step cost 1, and 2 once a label with the event was read, the first label left out."""
    return rs.TraceSet(
        rs.Trace(
            trace.observations,
            trace.labels,
            trace.actions,
            trace.rewards,
            terminated=trace.terminated,
            truncated=trace.truncated,
            columns={"cost": [1 + has_read(trace, step, event) for step in range(len(trace))]},
        )
        for trace in traces
    )


def has_read(trace, step, event):
    """Whether a label with this event came before a step is answered, the first one left out."""
    return any(event in label for label in trace.labels[1 : step + 1])


def lamp_machines():
    """Machines of a room with a lamp: to look pays and costs more once the lamp is on.

    Nobody waits once it is on: what waiting then pays and costs is assumed to be the same.
    """
    dark = rs.Trace(["room"] * 2, [None] * 2, ["look"], [0], columns={"cost": [1]})
    return rs.infer(
        rs.TraceSet([dark, lit(["wait", "look"], [0, 1], [3, 2])]),
        outputs=["observation", "reward", "cost"],
    ).machines


def lit(actions, rewards, costs):
    """A trace in which the lamp goes on before the second step."""
    return rs.Trace(["room"] * 3, [None, "on", None], actions, rewards, columns={"cost": costs})


def lit_wait(paid):
    """A trace that waits, and waits again once the lamp is on, which then pays this."""
    return lit(["wait", "wait"], [0, paid], [3, 3])


def lamps():
    """Two images of a room, with its lamp off and on."""
    off, on = np.zeros((2, 4, 5, 3), int)
    on[1, 2] = (200, 100, 50)
    off[3, 4] = (0, 0, 90)
    return off, on


def lamp_traces(spoiled=False):
    """Traces of that room: "press" lights the lamp, unless it has buzzed."""
    off, on = ({"image": image, "room": 1} for image in lamps())
    lights = rs.Trace([off, on, off], [None, None, None], ["press", "wait"], [1, 0])
    buzzes = rs.Trace([off, off, off], [None, "buzz", None], ["wait", "press"], [0, 0])
    wrong = rs.Trace([off, off], [None, None], ["press"], [1])
    return rs.TraceSet([lights, buzzes, *([wrong] * spoiled)])
