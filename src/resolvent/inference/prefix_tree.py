"""The prefix tree: one node for each distinct label sequence, with the outputs observed there.

Input: samples. Output: `PrefixTree`. The paper calls it the prefix tree transducer. Nodes are
numbered in shortlex order of their label sequences: by length, then label by label. The root is 0.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from resolvent.preprocess.samples import ContradictoryRows, SampleSet
from resolvent.preprocess.timing import NONE


@dataclass(slots=True)
class PrefixTree:
    """A tree that merging folds, in place, into an automaton.

    `children[v]` maps labels to nodes, `outputs[v]` α-inputs to outputs, and `counts[v]` α-inputs
    to how often they were observed; these change as states are merged. The other fields describe
    the tree as it was built: `visits[v]` is the number of times that traces reach the node, and
    `last_output[v]` the output of the step before it, or `NONE` if there is none or traces differ.
    """

    parent: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    children: list[dict[int, int]] = field(default_factory=list)
    outputs: list[dict[int, int]] = field(default_factory=list)
    counts: list[dict[int, int]] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)
    last_output: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, parent: int, label: int) -> int:
        """Add a node below `parent` and return its number."""
        node = len(self)
        self.parent.append(parent)
        self.label.append(label)
        self.children.append({})
        self.outputs.append({})
        self.counts.append({})
        self.visits.append(0)
        self.last_output.append(NONE)
        if parent != NONE:
            self.children[parent][label] = node
        return node


def build_prefix_tree(samples: SampleSet) -> PrefixTree:
    """Build the tree that represents the samples exactly, without generalizing.

    Paper: BuildPTT in "DB-RPNI Pseudocode".

    Raises:
        ContradictoryRows: when one label sequence has two outputs for one α-input.
    """
    unsorted = PrefixTree()
    unsorted.add(NONE, NONE)
    node_of_row: list[int] = []
    beta = samples.beta.tolist()
    for start, stop in pairwise(samples.offsets.tolist()):
        node = 0
        unsorted.visits[0] += 1
        for label in beta[start:stop]:
            if label != NONE:
                child = unsorted.children[node].get(label)
                node = unsorted.add(node, label) if child is None else child
                unsorted.visits[node] += 1
            node_of_row.append(node)
    tree, number = _in_shortlex_order(unsorted)
    node_of_row = [number[node] for node in node_of_row]
    _set_last_outputs(tree, samples, node_of_row)
    _set_outputs(tree, samples, node_of_row)
    return tree


def _in_shortlex_order(tree: PrefixTree) -> tuple[PrefixTree, dict[int, int]]:
    """Return a tree without outputs in shortlex order, and the new number of each node."""
    ordered, number, queue = PrefixTree(), {NONE: NONE}, [0]
    for node in queue:  # breadth first, children in label order
        number[node] = ordered.add(number[tree.parent[node]], tree.label[node])
        ordered.visits[number[node]] = tree.visits[node]
        queue += [child for _, child in sorted(tree.children[node].items())]
    return ordered, number


def _set_outputs(tree: PrefixTree, samples: SampleSet, node_of_row: list[int]) -> None:
    contradictions = []
    rows = zip(node_of_row, samples.alpha.tolist(), samples.output.tolist(), strict=True)
    first_row: dict[tuple[int, int], int] = {}
    for row, (node, alpha, output) in enumerate(rows):
        if alpha == NONE:
            continue
        first = first_row.setdefault((node, alpha), row)
        if tree.outputs[node].setdefault(alpha, output) != output:
            contradictions.append((node, alpha, first, row))
        tree.counts[node][alpha] = tree.counts[node].get(alpha, 0) + 1
    if contradictions:
        _, _, first, second = min(contradictions)
        raise ContradictoryRows(first, second)


def _set_last_outputs(tree: PrefixTree, samples: SampleSet, node_of_row: list[int]) -> None:
    last_outputs: dict[int, set[int]] = {}
    alpha, output = samples.alpha.tolist(), samples.output.tolist()
    for start, stop in pairwise(samples.offsets.tolist()):
        node, last_output = 0, NONE
        for row in range(start, stop):
            if node_of_row[row] != node:
                node = node_of_row[row]
                last_outputs.setdefault(node, set()).add(last_output)
            last_output = NONE if alpha[row] == NONE else output[row]
    for node, outputs in last_outputs.items():
        if len(outputs) == 1:
            (tree.last_output[node],) = outputs
