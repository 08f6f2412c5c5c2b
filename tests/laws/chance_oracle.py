"""How likely machines hold answers to be, by the definition: one answer at a time."""

from collections import Counter
from math import log2


def known_chance(machine, told, asked, answers, output):
    """The chance of an output among those that the machine knows, by its definition."""
    main, total = machine.output(*asked), sum(answers.values())
    noise = told.noise[min(int(log2(total)), len(told.noise) - 1)]
    of_main = (answers[main] + told.strength * (1 - noise)) / (total + told.strength)
    if output == main:
        return of_main
    elsewhere = Counter()
    for state in range(machine.states):
        if state != asked[0] and asked[1:] not in machine.constant_outputs:
            others = machine.counts(state, *asked[1:])
            its_main = machine.output(state, *asked[1:], generalized=False)
            elsewhere.update({one: others[one] for one in others if one not in (its_main, main)})
    even = told.uniform_strength
    base = (elsewhere[output] + even / (len(machine.outputs) - 1)) / (elsewhere.total() + even)
    odd = answers.get(output, 0) + told.deviating_strength * base
    return (1 - of_main) * odd / (total - answers[main] + told.deviating_strength)
