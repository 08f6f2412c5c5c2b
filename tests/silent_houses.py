"""Houses whose infos have no labels: one reports them by a method, the other not at all."""

from typing import Any

from resolvent.worlds import House


class SilentHouse(House):
    """Reports no labels."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        room, info = super().reset(**options)
        self.event = info["labels"]
        return room, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        *outcome, info = super().step(action)
        self.event = info["labels"]
        return *outcome, {}


class HouseWithMethod(SilentHouse):
    """Reports its label by a method."""

    def get_events(self) -> Any:
        return self.event
