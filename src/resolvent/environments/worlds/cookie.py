"""Moved."""

from resolvent.worlds.cookie import (BUTTON, Baked, Cookie, CookieRules, Looked, PublishedCookieRules, _ORDER)  # noqa: F401
