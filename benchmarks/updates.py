"""The cost of one more trace: sixty updates of one trace each, beside a new inference.

In the house and in a 25×25 world of the paper's appendix, after 1,000 traces. An update replays
the new trace and adds its counts, so its cost should not grow with the number of updates.
"""

import statistics
import time

import gymnasium as gym

import resolvent as rs

UPDATES, TRACES = 60, 1_000


def main() -> None:
    """Measure each world in turn."""
    print(f"{UPDATES} updates of one trace, after inference from {TRACES:,} traces; milliseconds\n")
    print(f"{'':<26}{'infer':>8}{'first 5':>9}{'last 5':>8}{'last/first':>12}{'states':>9}")
    for name in ("resolvent/House-v0", "resolvent/RandomWorld-v0"):
        env = gym.make(name)
        traces = rs.collect(env, episodes=TRACES, seed=0)
        new_traces = rs.collect(env, episodes=UPDATES, seed=1)
        started = time.perf_counter()
        result = rs.infer(traces)
        inferring = time.perf_counter() - started
        seconds = []
        for number in range(UPDATES):
            trace = new_traces[number : number + 1]
            started = time.perf_counter()
            result = result.update(trace)
            seconds.append(time.perf_counter() - started)
        first, last = (statistics.median(part) for part in (seconds[:5], seconds[-5:]))
        states = "/".join(str(machine.states) for machine in result.machines.values())
        print(
            f"{name:<26}{1e3 * inferring:>8.1f}{1e3 * first:>9.1f}{1e3 * last:>8.1f}"
            f"{last / first:>12.2f}{states:>9}"
        )
        machines = rs.infer(rs.TraceSet.concatenate([traces, new_traces])).machines
        print(
            f"{'':<26}{'the same machines as at once' if result.machines == machines else 'OTHERS'}"
        )


if __name__ == "__main__":
    main()
