"""Machines that hold in which states their constant outputs were observed."""

from resolvent.replay.replaying import states_at_steps
from resolvent.replay.steps import step_queries


def with_observed(machines, traces):
    """Return the machines with the constant outputs of the traces marked as observed."""
    queries = step_queries(machines, traces, states_at_steps(machines, traces)).values()
    return machines.replacing(
        *(own.machine.with_observed(own.states, own.queries) for own in queries)
    )
