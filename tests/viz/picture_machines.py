"""Machines to draw, and what a reader finds in a picture of one."""

import re
from dataclasses import dataclass
from random import Random
from xml.etree import ElementTree

import numpy as np

from resolvent.machines import TransitionMachine
from resolvent.traces import Vocabulary

SVG = "{http://www.w3.org/2000/svg}"


def machine_of(step, names, trivial=()):
    """A machine that moves as `step[state][label]` says and answers nothing; labels in order."""
    none = np.array([], np.int32)
    return TransitionMachine(
        labels=Vocabulary(frozenset({name}) for name in names),
        observations=Vocabulary(["hall"]),
        actions=Vocabulary(["go"]),
        outputs=Vocabulary(["hall"]),
        transitions=np.array(step, np.int32),
        trivial=trivial,
        output_state=none,
        output_query=none.astype(np.int64),
        output_value=none,
        constant_query=none.astype(np.int64),
        constant_value=none,
    )


def random_machine(states, names, seed=0, unseen=0.2):
    """A machine with so many states, all reached, in breadth-first order."""
    random = Random(seed)
    tree = [[-1] * len(names) for _ in range(states)]
    free = [(0, label) for label in range(len(names))]
    for state in range(1, states):
        source, label = free.pop(random.randrange(min(len(free), 4)))
        tree[source][label] = state
        free += [(state, label) for label in range(len(names))]
    for source, label in free:
        if random.random() >= unseen:
            tree[source][label] = random.randrange(states)
    order = [0]
    for state in order:
        targets = dict.fromkeys(target for target in tree[state] if target >= 0)
        order += [target for target in targets if target not in order]
    number = {state: at for at, state in enumerate(order)} | {-1: -1}
    return machine_of([[number[target] for target in tree[state]] for state in order], names)


@dataclass
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other, slack=0.0):
        return (
            self.left + slack < other.right
            and other.left + slack < self.right
            and self.top + slack < other.bottom
            and other.top + slack < self.bottom
        )

    def holds(self, other):
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )

    def distance_to_border(self, point):
        x, y = point
        outside = max(self.left - x, x - self.right, self.top - y, y - self.bottom)
        return abs(outside)


class Drawn:
    """A picture read back: boxes by state, curves and lines of text by pair of states."""

    def __init__(self, svg, width_of):
        self.root = ElementTree.fromstring(svg)  # noqa: S314 -- what the package drew
        self.width_of = width_of
        self.size = tuple(map(float, self.root.get("viewBox").split()[2:]))
        self.boxes = {}
        self.names = {}
        self.curves = {}
        self.labels = {}
        for group in self.root.iter(f"{SVG}g"):
            kind = (group.get("class") or "").split(" ")[0]
            ends = (int(group.get("data-from") or 0), int(group.get("data-to") or 0))
            if kind == "rs-state":
                state = int(group.get("data-state"))
                rect, texts = group.find(f"{SVG}rect"), group.findall(f"{SVG}text")
                x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
                self.boxes[state] = Box(x, y, x + w, y + h)
                self.names[state] = [self.text(line, 11) for line in texts[1:]]
            elif kind == "rs-arrow":
                assert ends not in self.curves
                line, head = group.findall(f"{SVG}path")
                self.curves[ends] = (points(line)[0], points(head)[1])
            elif kind == "rs-labels":
                assert ends not in self.labels
                self.labels[ends] = [self.text(line, 12) for line in group.findall(f"{SVG}text")]

    def text(self, element, size):
        """A line of text and the box that its letters fill."""
        x, y = float(element.get("x")), float(element.get("y"))
        wide = self.width_of(element.text, size)
        return element.text, Box(x - wide / 2, y - 0.75 * size, x + wide / 2, y + 0.2 * size)

    def titles(self):
        return [title.text for title in self.root.iter(f"{SVG}title")]

    def notes(self):
        lines = self.root.iter(f"{SVG}text")
        return " ".join(line.text for line in lines if line.get("class") == "rs-note")


def points(path):
    numbers = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", path.get("d"))))
    return list(zip(numbers[::2], numbers[1::2], strict=True))
