"""Machines that know in which states their constant questions were asked."""

from resolvent.machines.score import questions_of


def witnessed(machines, traces):
    """The machines, told all that the traces ask of them."""
    asked = questions_of(machines, machines.timing, traces).values()
    return machines.replacing(*(one.machine.witnessing(one.states, one.questions) for one in asked))
