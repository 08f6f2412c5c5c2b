"""Comparison of reward machines with rewards on their edges."""

from resolvent.machines.memory import BreadthFirstSearch


def first_difference(one, two, labels):
    """A shortest label sequence after which rewards differ or only one episode is over, or None."""
    search = BreadthFirstSearch([(one.initial, two.initial)])
    for pair in search:
        for label in () if one.has_ended(pair[0]) else labels:
            (target, reward), (second, paid) = one.step(pair[0], label), two.step(pair[1], label)
            if reward != paid or one.has_ended(target) != two.has_ended(second):
                return (*(read for _, read in search.path_to(pair)), label)
            search.add((target, second), pair, label)
    return None
