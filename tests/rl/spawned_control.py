"""The function that a spawned process calls in test_rl_as_data.py."""

from typing import Any


def acted(plan: Any, learned: Any, memory: Any, env: Any) -> tuple[Any, ...]:
    """Use the objects that were sent; return plain values and the plan itself."""
    observation, _ = env.reset()
    memory.step({"key"})
    return plan, plan.action("corridor", 0, 0), learned.action(observation), memory.states
