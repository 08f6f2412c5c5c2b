"""Moved."""

from resolvent.rl.env import (  # noqa: F401
    AnyEnv,
    Labels,
    MadeOf,
    Names,
    finite_reward,
    label_method,
)
