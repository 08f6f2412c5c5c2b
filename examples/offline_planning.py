"""Compute the best policy from a file of recorded traces, without the environment.

Run it with: python examples/offline_planning.py
"""

import tempfile
from pathlib import Path

import gymnasium as gym

import resolvent as rs


def main() -> None:
    """Record traces, plan from the file alone, then execute the plan."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "house.parquet"
        rs.collect(gym.make("resolvent/House-v0"), episodes=200, seed=0).save(log)
        traces = rs.read_traces(log)  # from here on, only the file is used

    mean_return = sum(sum(trace.rewards) for trace in traces) / len(traces)
    mean_steps = traces.steps / len(traces)
    print(f"The file has {len(traces)} random walks.")
    print(f"Mean length {mean_steps:.0f}, mean return {mean_return:.2f}.\n")

    for episodes in (10, 200):
        sample = traces[:episodes]
        plan = rs.plan(rs.infer(sample), sample, gamma=0.95)
        print(f"Plan from {episodes} of them:\n{plan}\n")

    print("Actions of the plan:")
    row = plan.model.starts[0]
    while row >= 0:
        room, transition_state, reward_state = plan.model.augmented_state(row)
        action = plan.action(room, transition_state, reward_state)
        print(f"  in the {room} (memory {transition_state}, {reward_state}): {action}")
        row = plan.model.next_state[row, plan.model.actions.code(action)]

    print(f"\nExecuted in the house: {plan.run(gym.make('resolvent/House-v0'), episodes=10)}")


if __name__ == "__main__":
    main()
