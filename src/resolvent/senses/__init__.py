"""Moved."""

from resolvent.preprocess.auto_discretize import auto_discretise  # noqa: F401
from resolvent.preprocess.discretize import Discretise  # noqa: F401
from resolvent.preprocess.reward_levels import RewardLevels  # noqa: F401
from resolvent.preprocess.transform import Senses  # noqa: F401
