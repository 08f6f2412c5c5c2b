"""The paper's worlds as Gymnasium environments; importing this registers them."""

import gymnasium as gym

from resolvent.environments.house import House

__all__ = ["House"]

_HOUSES = {
    "resolvent/House-v0": {"pays": "sofa"},
    "resolvent/HouseInterference-v0": {"pays": "cyanroom"},
}

for _id, _kwargs in _HOUSES.items():
    # Gymnasium warns on a second registration, which a reload would cause.
    if _id not in gym.registry:
        gym.register(_id, entry_point="resolvent.environments.house:House", kwargs=_kwargs)
