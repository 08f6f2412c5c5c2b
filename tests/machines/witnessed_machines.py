"""Machines that know in which states their constant questions were asked."""

from resolvent.replay import states_at_steps, step_queries


def witnessed(machines, traces):
    """The machines, told all that the traces ask of them."""
    asked = step_queries(machines, traces, states_at_steps(machines, traces)).values()
    return machines.replacing(*(one.machine.witnessing(one.states, one.questions) for one in asked))
