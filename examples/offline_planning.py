"""From a file of old traces to the best way to act, without touching the world in between.

Run it with: python examples/offline_planning.py
"""

import tempfile
from pathlib import Path

import gymnasium as gym

import resolvent as rs


def main() -> None:
    """Record traces, forget the world, plan from the file alone, and only then act."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "house.parquet"
        rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0).save(log)
        traces = rs.read_traces(log)  # from here on, the file is all there is

    random = sum(sum(trace.rewards) for trace in traces) / len(traces)
    steps = traces.steps / len(traces)
    print(f"In the log: {len(traces)} random walks, {steps:.0f} steps each, paid {random:.2f}.\n")

    for episodes in (10, 200):
        some = traces[:episodes]
        plan = rs.plan(rs.infer(some), some, gamma=0.95)
        print(f"What {episodes} of them tell:\n{plan}\n")

    print("What the plan does:")
    here = plan.model.starts[0]
    while here >= 0:
        room, transition_state, reward_state = plan.model.named(here)
        action = plan.action(room, transition_state, reward_state)
        print(f"  in the {room} (memory {transition_state}, {reward_state}): {action}")
        here = plan.model.following[here, plan.model.actions.code(action)]

    print(f"\nIn the house itself: {plan.run(gym.make('resolvent/House-v0'), episodes=10)}")


if __name__ == "__main__":
    main()
