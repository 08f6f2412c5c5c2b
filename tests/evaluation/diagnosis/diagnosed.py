"""Traces made by hand, and the finding of one kind among those about them."""

import resolvent as rs


def finding_of(traces, kind, **options):
    """The one finding of a kind in a diagnosis of traces; None if there is none."""
    diagnosis = rs.diagnose(traces, **options)
    (finding, *more) = [one for one in diagnosis.findings if one.kind == kind] or [None]
    assert more == []
    return finding


def trace(observations, labels=None, actions=None, rewards=None, **more):
    """A trace without events or rewards and with one action, except for the arguments."""
    steps = len(observations) - 1
    return rs.Trace(
        observations,
        [None] * (steps + 1) if labels is None else labels,
        ["go"] * steps if actions is None else actions,
        [0] * steps if rewards is None else rewards,
        **more,
    )
