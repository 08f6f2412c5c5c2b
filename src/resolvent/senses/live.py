"""A live environment → its observations, actions and labels as machines know them."""

from collections.abc import Callable
from typing import Any

from resolvent.errors import OptionError
from resolvent.senses.senses import Senses
from resolvent.traces.labelling import Labelling, as_labelling
from resolvent.traces.live.naming import AnyEnv, MadeOf, Names


class LiveSenses:
    """What machines make of what an environment shows.

    `observations` and `actions` turn values of the environment into the symbols that
    machines know. `label_of` is the function that makes labels, for `Labels`; None where
    the environment tells them. `labels` says how labels are made where that is another way
    than the senses have.

    >>> from resolvent.environments import House
    >>> live = LiveSenses(House(), Senses(Labelling("observation")))
    >>> live.observations(0), sorted(live.label_of(None, None, None, 0, {}))
    ('corridor', ['corridor'])
    """

    def __init__(
        self,
        env: AnyEnv,
        senses: Senses,
        labels: str | Labelling | None = None,
        label_of: Callable[..., Any] | None = None,
        name_of: Callable[[Any], Any] | None = None,
    ) -> None:
        labelling = senses.labelling if labels is None else as_labelling(labels, label_of)
        if not senses.labelling.is_given and labelling != senses.labelling:
            raise OptionError(
                f"the machines make labels by themselves, of each {senses.labelling.reads}: "
                f"leave out labels"
            )
        if label_of is not None and not labelling.is_given:
            raise OptionError(
                f"the machines make labels by themselves, of each {labelling.reads}: "
                f"leave out label_of"
            )
        then = {} if senses.discretise is None else {senses.discretise.of: senses.discretise}
        self.observations = Names(env, "observation", name_of, then.get("observation"))
        self.actions = Names(env, "action", then=then.get("action"))
        self.label_of = label_of
        if not labelling.is_given:
            self.label_of = MadeOf(labelling, self.observations, self.actions)
