"""Both machines from the same samples: Resolvent against AALpy 2.0's general state merging.

AALpy gets the reduced samples that Resolvent's own search gets, as a prefix
tree of labels with the answers seen at each node as node data, so that it
searches the same space; in the order of `rpni` (first fit) and, with --edsm,
by most agreeing answers. Its machines are compared with ours. Needs
`pip install aalpy`. Run with `make benchmark-peers`.
"""

import argparse
import json
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from aalpy.learning_algs.general_passive.DataHandler import DataHandler
from aalpy.learning_algs.general_passive.GeneralizedStateMerging import GeneralizedStateMerging
from aalpy.learning_algs.general_passive.GsmNode import GsmNode, no_op_input, unknown_output
from aalpy.learning_algs.general_passive.ScoreFunctionsGSM import ScoreCalculation
from pipeline import generated, plain_bytes, timed

import resolvent as rs
from resolvent.machines.score import states_at_steps
from resolvent.reduction import remove_redundant, remove_trivial, trivial_codes
from resolvent.samples import Histories, LabelTiming, SampleSet, reward_samples, transition_samples
from resolvent.supplement import supplement


class Answers(DataHandler):
    """Node data: the answers seen there, by question."""

    def init_data(self):
        return {}

    def aggregate_data(self, src_node, in_value, out_value, dst_node):
        pass

    def merge(self, x, y):
        x.update(y)
        return x

    def copy(self, x):
        return dict(x)


class FirstFit(ScoreCalculation):
    """Two nodes are compatible if no question has different answers; the first fit is taken."""

    def local_compatibility(self, a, b):
        few, many = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        return all(many.get(question, answer) == answer for question, answer in few.items())


class MostEvidence(FirstFit):
    """Of all fits the one on which most answers agree."""

    def initialize_merge(self, red, blue, first_pass):
        self.agreeing = 0

    def local_compatibility(self, a, b):
        few, many = (a.data, b.data) if len(a.data) < len(b.data) else (b.data, a.data)
        for question, answer in few.items():
            other = many.get(question)
            if other is not None:
                if other != answer:
                    return False
                self.agreeing += 1
        return True

    def score_function(self, part):
        return self.agreeing


def aalpy_tree(samples: SampleSet) -> GsmNode:
    """Build AALpy's tree: labels lead on, answers lie at the nodes."""
    root = GsmNode((no_op_input, unknown_output), None, {})
    beta, alpha, output = (c.tolist() for c in (samples.beta, samples.alpha, samples.output))
    offsets = samples.offsets.tolist()
    for start, stop in pairwise(offsets):
        node = root
        for row in range(start, stop):
            label = beta[row]
            if label >= 0:
                children = node.transitions[label]
                child = children.get(0)
                if child is None:
                    child = children[0] = GsmNode((label, 0), node, {})
                node = child
            if alpha[row] >= 0:
                node.data[alpha[row]] = output[row]
    return root


def aalpy_machine(samples: SampleSet, edsm: bool) -> np.ndarray:
    """Let AALpy infer; return its transition table, numbered breadth first."""
    merging = GeneralizedStateMerging(
        output_behavior="mealy",
        transition_behavior="deterministic",
        score_calc=MostEvidence() if edsm else FirstFit(),
        data_handler=Answers(),
        node_order="short-lex" if not edsm else None,
        consider_only_min_blue=not edsm,
    )
    root = merging.run(aalpy_tree(samples), convert=False, data_format="tree")
    number = {root: 0}
    queue = [root]
    rows = []
    for node in queue:
        row = [-1] * len(samples.labels)
        for label in sorted(node.transitions):
            for child in node.transitions[label].values():
                if child not in number:
                    number[child] = len(number)
                    queue.append(child)
                row[label] = number[child]
        rows.append(row)
    return np.array(rows)


def main() -> None:
    """Measure both on the same traces and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, help="traces in the paper's format")
    parser.add_argument("--edsm", action="store_true", help="AALpy by most evidence as well")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.traces or generated(Path(folder) / "high.jsonl", 10_000)
        lines = [line for line in plain_bytes(path).split(b"\n") if line]
        loads, ours = [], []
        for _ in range(options.repetitions):
            loads.append(timed(lambda: [None for line in lines if json.loads(line) is None]))
            traces = rs.read_traces(path)
            ours.append(timed(lambda traces=traces: rs.infer(traces)))
        result = rs.infer(traces)
    print(f"{len(traces)} traces, {traces.steps} steps; {result.refinement}\n")

    trivial = trivial_codes(traces.labels)
    histories = remove_trivial(Histories.of(traces, LabelTiming.CURRENT), trivial)
    tm = result.machines.transition
    observed = supplement(tm, traces, states_at_steps(tm, histories))
    samples = {
        "transition": transition_samples(traces, histories),
        "reward": reward_samples(traces, histories, observed=observed),
    }
    rows = {"json.loads": statistics.median(loads), "resolvent": statistics.median(ours)}
    for edsm in (False, True) if options.edsm else (False,):
        name = "AALpy, most evidence" if edsm else "AALpy, first fit"
        started = time.perf_counter()
        tables = {
            machine: aalpy_machine(remove_redundant(one)[0], edsm)
            for machine, one in samples.items()
        }
        rows[name] = time.perf_counter() - started
        for machine, table in tables.items():
            mine = getattr(result.machines, machine).transitions.copy()
            mine[:, list(trivial)] = -1
            same = "the same machine" if np.array_equal(mine, table) else "ANOTHER machine"
            print(f"{name}: {machine} {len(table)} states, {same} as ours")
    print(f"\n{'':<24}{'seconds':>10}{'times ours':>12}{'of json.loads':>15}")
    for name, seconds in rows.items():
        ratios = seconds / rows["resolvent"], seconds / rows["json.loads"]
        print(f"{name:<24}{seconds:>10.3f}{ratios[0]:>12.1f}{ratios[1]:>15.3f}")


if __name__ == "__main__":
    main()
