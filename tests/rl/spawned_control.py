"""What a spawned process does with what it was sent; see test_control_as_data.py."""

from typing import Any


def acted(plan: Any, learned: Any, memory: Any, env: Any) -> tuple[Any, ...]:
    """Act by what came over, and send back plain values and the plan itself."""
    observation, _ = env.reset()
    memory.step({"key"})
    return plan, plan.action("corridor", 0, 0), learned.action(observation), memory.states
