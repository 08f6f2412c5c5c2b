"""Worlds walked by hand: the steps of a list of actions."""

from resolvent.worlds.env import World

Step = tuple[object, set[str], float, bool]


def walk(world: World, *actions: str, start: object = None) -> list[Step]:
    """Return (observation, labels, reward, terminated) of each step after a reset."""
    options = None if start is None else {"start": world.observation_names.index(start)}
    world.reset(options=options)
    steps = []
    for name in actions:
        code, reward, terminated, _, info = world.step(world.action_names.index(name))
        steps.append((world.observation_names[code], set(info["labels"]), reward, terminated))
    return steps
