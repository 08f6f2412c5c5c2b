"""Moved."""

from resolvent.worlds.two_keys import (DOORS, Errand, GOAL, Noted, PublishedTwoKeysRules, TwoKeys, TwoKeysRules, _INNER_WALLS, _KEY_ROOMS, _lying)  # noqa: F401
