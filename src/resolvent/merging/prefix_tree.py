"""Samples → prefix tree: one node per distinct label history, holding its answers.

The paper calls it the prefix tree transducer. Nodes are numbered in shortlex
order of their histories: by length, then label by label. The root is 0.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from resolvent.merging.automaton import Contradiction
from resolvent.samples import NONE, SampleSet


@dataclass(slots=True)
class PrefixTree:
    """A tree that merging folds, in place, into an automaton.

    `children[v]` maps labels to nodes, `answers[v]` alphas to outputs and
    `counts[v]` alphas to how often they were answered; these change as states are
    merged. The other fields describe the tree as it was built: `visits[v]` is how
    often a trace came by, and `lead[v]` the answer just before, or `NONE` if there is
    none or traces differ.
    """

    parent: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    children: list[dict[int, int]] = field(default_factory=list)
    answers: list[dict[int, int]] = field(default_factory=list)
    counts: list[dict[int, int]] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)
    lead: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, parent: int, label: int) -> int:
        """Add a node below `parent` and return its number."""
        node = len(self)
        self.parent.append(parent)
        self.label.append(label)
        self.children.append({})
        self.answers.append({})
        self.counts.append({})
        self.visits.append(0)
        self.lead.append(NONE)
        if parent != NONE:
            self.children[parent][label] = node
        return node


def build_prefix_tree(samples: SampleSet) -> PrefixTree:
    """Build the tree that represents the samples exactly, without generalising.

    Paper: BuildPTT in "DB-RPNI Pseudocode".

    Raises:
        Contradiction: when one history answers one alpha in two ways.
    """
    tree = PrefixTree()
    tree.add(NONE, NONE)
    node_of_row: list[int] = []
    beta = samples.beta.tolist()
    offsets = samples.offsets.tolist()
    for start, stop in pairwise(offsets):
        node = 0
        tree.visits[0] += 1
        for label in beta[start:stop]:
            if label != NONE:
                child = tree.children[node].get(label)
                node = tree.add(node, label) if child is None else child
                tree.visits[node] += 1
            node_of_row.append(node)

    number = _number_shortlex(tree)
    tree = _renumbered(tree, number)
    _note_leads(tree, samples, [number[old] for old in node_of_row])
    clashes = []
    rows = zip(node_of_row, samples.alpha.tolist(), samples.output.tolist(), strict=True)
    first_row: dict[tuple[int, int], int] = {}
    for row, (old, alpha, output) in enumerate(rows):
        if alpha == NONE:
            continue
        node = number[old]
        first = first_row.setdefault((node, alpha), row)
        if tree.answers[node].setdefault(alpha, output) != output:
            clashes.append((node, alpha, first, row))
        tree.counts[node][alpha] = tree.counts[node].get(alpha, 0) + 1
    if clashes:
        _, _, first, second = min(clashes)
        raise Contradiction(first, second)
    return tree


def _note_leads(tree: PrefixTree, samples: SampleSet, node_of_row: list[int]) -> None:
    leads: dict[int, set[int]] = {}
    alpha, output = samples.alpha.tolist(), samples.output.tolist()
    for start, stop in pairwise(samples.offsets.tolist()):
        node, said = 0, NONE
        for row in range(start, stop):
            if node_of_row[row] != node:
                node = node_of_row[row]
                leads.setdefault(node, set()).add(said)
            said = NONE if alpha[row] == NONE else output[row]
    for node, said_before in leads.items():
        if len(said_before) == 1:
            (tree.lead[node],) = said_before


def _number_shortlex(tree: PrefixTree) -> list[int]:
    """Return the shortlex number of each node: breadth first, children in label order."""
    order = [0]
    for node in order:
        order.extend(child for _, child in sorted(tree.children[node].items()))
    number = [0] * len(order)
    for position, node in enumerate(order):
        number[node] = position
    return number


def _renumbered(tree: PrefixTree, number: list[int]) -> PrefixTree:
    new = PrefixTree()
    for old in sorted(range(len(tree)), key=number.__getitem__):
        above = tree.parent[old]
        node = new.add(NONE if above == NONE else number[above], tree.label[old])
        new.visits[node] = tree.visits[old]
    return new
