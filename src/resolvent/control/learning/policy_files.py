"""What was learned ↔ one versioned JSON file, checked before any of it is used."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from resolvent.atomic_file import atomic_write
from resolvent.control.learning.curve import Curve
from resolvent.control.learning.evaluating import Evaluation
from resolvent.errors import ModelError, TraceError
from resolvent.json_files import read_json
from resolvent.traces.symbols import Symbol, as_symbol

if TYPE_CHECKING:
    from resolvent.control.learning.learned import Learned

FORMAT = "resolvent-policy"
VERSION = 1

# Numbers that the arrays of a policy can hold.
_Number = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class _Evaluation(msgspec.Struct, forbid_unknown_fields=True):
    value: str  # as text, for JSON has no infinity
    ended: float
    exact: bool
    episode: _Count | None
    steps: _Count | None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    gamma: Annotated[float, msgspec.Meta(ge=0, le=1)]
    engine: str
    first_action: _Number
    situations: list[Any]
    q: list[list[float]]
    returns: list[float]
    discounted_returns: list[float]
    steps: list[_Count]
    epsilons: list[float]
    evaluations: list[_Evaluation]
    observation_names: list[Any] | None = None
    action_names: list[Any] | None = None
    potential: list[float] | msgspec.UnsetType = msgspec.UNSET


def save(learned: "Learned", path: str | Path) -> None:
    """Write what was learned to a JSON file, whole or not at all."""
    curve = learned.curve
    content = _File(
        format=FORMAT,
        version=VERSION,
        gamma=learned.gamma,
        engine=learned.engine,
        first_action=learned.first_action,
        situations=list(learned.situations),
        q=learned.q.tolist(),
        returns=curve.returns.tolist(),
        discounted_returns=curve.discounted_returns.tolist(),
        steps=curve.steps.tolist(),
        epsilons=curve.epsilons.tolist(),
        evaluations=[
            _Evaluation(repr(one.value), one.ended, one.exact, one.episode, one.steps)
            for one in learned.evaluations
        ],
        observation_names=_listed(learned.observation_names),
        action_names=_listed(learned.action_names),
        potential=msgspec.UNSET if learned.potential is None else learned.potential.tolist(),
    )
    with atomic_write(path) as file:
        file.write(msgspec.json.encode(content) + b"\n")


def load(path: str | Path) -> dict[str, Any]:
    """Read what `save` wrote, as the fields of a `Learned`."""
    content = read_json(path, _File, "a policy that Resolvent wrote")
    try:
        situations = tuple(map(as_symbol, content.situations))
        evaluations = tuple(
            Evaluation(float(one.value), one.ended, one.exact, one.episode, one.steps)
            for one in content.evaluations
        )
        names = _symbols(content.observation_names), _symbols(content.action_names)
    except (ValueError, TraceError, RecursionError) as error:
        raise ModelError(f"{path}: not a policy that Resolvent wrote: {error}") from error
    if (content.format, content.version) != (FORMAT, VERSION):
        raise ModelError(
            f"{path}: a policy is {FORMAT} {VERSION}, this is {content.format} {content.version}"
        )
    lengths = {len(row) for row in content.q}
    potential = None
    if not isinstance(content.potential, msgspec.UnsetType):
        potential = np.array(content.potential, np.float64)
    columns = (content.returns, content.discounted_returns, content.steps, content.epsilons)
    if (
        len(lengths) != 1
        or 0 in lengths
        or not len(content.q) == len(situations) == len(set(situations))
        or len({len(column) for column in columns}) != 1
        or (potential is not None and len(potential) != len(content.q))
        or (names[1] is not None and not _are_named(content.first_action, max(lengths), names[1]))
    ):
        raise ModelError(f"{path}: its rows do not fit together")
    return {
        "q": np.array(content.q, np.float64),
        "situations": situations,
        "curve": Curve(
            np.array(content.returns, np.float64),
            np.array(content.discounted_returns, np.float64),
            np.array(content.steps, np.int64),
            np.array(content.epsilons, np.float64),
        ),
        "gamma": content.gamma,
        "evaluations": evaluations,
        "engine": content.engine,
        "first_action": content.first_action,
        "observation_names": names[0],
        "action_names": names[1],
        "potential": potential,
    }


def _are_named(first: int, actions: int, names: tuple[Symbol, ...]) -> bool:
    """Whether each of some actions has a name; the first name is that of action 0."""
    return 0 <= first <= len(names) - actions


def _listed(names: tuple[Symbol, ...] | None) -> list[Symbol] | None:
    return None if names is None else list(names)


def _symbols(names: list[Any] | None) -> tuple[Symbol, ...] | None:
    return None if names is None else tuple(map(as_symbol, names))
