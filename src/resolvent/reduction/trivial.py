"""Trivial beta-input removal: labels known to change no state.

The search does not see them; the machine gets them back as self-loops.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from resolvent import _core
from resolvent._util.text import visible
from resolvent.errors import OptionError
from resolvent.samples import NONE, Histories
from resolvent.traces.symbols import NO_EVENT, Label, label_text
from resolvent.traces.vocabulary import Vocabulary

_MOST_NAMED = 20


def trivial_codes(labels: Vocabulary[Label], named: Iterable[Label | str] = ()) -> tuple[int, ...]:
    """Return the codes of the trivial labels: "no event" if it occurs, and the named ones.

    A name is a label, or the text it prints as. One that never occurs is an
    error, for it is most likely misspelt.

    >>> labels = Vocabulary([frozenset(), frozenset({"key"}), frozenset({"sofa"})])
    >>> trivial_codes(labels), trivial_codes(labels, ["sofa"])
    ((0,), (0, 2))
    """
    by_text = {label_text(label): code for code, label in enumerate(labels)}
    codes = {labels.code(NO_EVENT)} if NO_EVENT in labels else set()
    for name in named:
        code = by_text.get(visible(name)) if isinstance(name, str) else labels.get(frozenset(name))
        if code is None:
            text = visible(name) if isinstance(name, str) else label_text(frozenset(name))
            known = ", ".join([*by_text][:_MOST_NAMED])
            if len(by_text) > _MOST_NAMED:
                known += f" and {len(by_text) - _MOST_NAMED:,} more"
            raise OptionError(
                f"trivial label '{text}' never occurs in the traces; their labels are: {known}"
            )
        if isinstance(name, str) and [*map(label_text, labels)].count(visible(name)) > 1:
            raise OptionError(
                f"trivial label '{name}' can be read in two ways: name it as a set of propositions"
            )
        codes.add(code)
    return tuple(sorted(codes))


def remove_trivial(histories: Histories, trivial: Iterable[int]) -> Histories:
    """Blank out the labels with these codes.

    Asked again, it returns the same histories, whose tree is then built once.

    Paper: "Trivial β-Input Removal".
    """
    codes = tuple(sorted(trivial))
    if codes not in histories.reduced:
        kept = np.arange(len(histories.labels), dtype=np.int32)
        kept[list(codes)] = NONE
        histories.reduced[codes] = replace(histories, beta=_core.recode(histories.beta, kept))
    return histories.reduced[codes]
