"""What a plan is made for: an observation, and the states of the machines that matter for acting.

These are the Transition Machine and the Reward Machine and, where there is one, the
machine that tells when episodes end. What others predict changes nothing for acting.
"""

from resolvent.errors import ModelError
from resolvent.machines import Machines, machines_of
from resolvent.machines.situations import KINDS, Situation, by_name, situation_text, states_text
from resolvent.wording import listed

__all__ = ["KINDS", "Situation", "by_name", "situation_text", "states_text", "that_matter"]


def that_matter(machines: Machines) -> Machines:
    """Return those of the machines that matter for acting, without anything about endings.

    >>> from resolvent.environments import House
    >>> list(that_matter(House().machines()))
    ['transition', 'reward']
    """
    for kind, output in (("transition", "observation"), ("reward", "reward")):
        if kind not in machines:
            raise ModelError(
                f"planning needs a {kind.capitalize()} Machine, and here is "
                f'{listed(machines)}: infer with "{output}" among outputs='
            )
    both = machines_of((machines[one] for one in KINDS if one in machines), machines.timing)
    return both.replacing(doubt=machines.doubt)
