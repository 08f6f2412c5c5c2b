"""Senses: raw steps, of traces or live → the observations and labels that machines read."""

from resolvent.senses.discretise import Discretise
from resolvent.senses.reward_levels import RewardLevels
from resolvent.senses.senses import Senses
from resolvent.senses.splitting import auto_discretise

__all__ = ["Discretise", "RewardLevels", "Senses", "auto_discretise"]
