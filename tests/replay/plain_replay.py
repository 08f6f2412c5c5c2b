"""What a replay should show, by walking traces in plain Python with values instead of codes."""

from collections import Counter
from dataclasses import dataclass, field

from resolvent.preprocess.timing import LabelReader


@dataclass
class PlainReplay:
    """Counters by kind of machine; a state of −1 is "not known"."""

    answers: dict = field(default_factory=dict)  # (state, observation, action, output) → times
    moves: dict = field(default_factory=dict)  # (state, label, target) → times
    unasked: Counter = field(default_factory=Counter)
    shortest: dict = field(default_factory=dict)  # what → length of the shortest trace showing it
    earliest: dict = field(default_factory=dict)  # what → (step, trace)
    states: dict = field(default_factory=dict)  # the state at every step of all traces
    situations: Counter = field(default_factory=Counter)
    ended: Counter = field(default_factory=Counter)

    @classmethod
    def of(cls, machines, traces):
        found = cls()
        for kind in machines:
            found.answers[kind], found.moves[kind] = Counter(), Counter()
            found.states[kind] = []
        for number, trace in enumerate(traces):
            found._walk(machines, trace, number)
        return found

    def _saw(self, what, trace, number, step):
        self.shortest[what] = min(self.shortest.get(what, len(trace)), len(trace))
        self.earliest[what] = min(self.earliest.get(what, (step, number)), (step, number))

    def _walk(self, machines, trace, number):
        reader = LabelReader(machines.timing)
        read = [reader.reset(trace.labels[0]), *map(reader.step, trace.labels[1:])]
        state = dict.fromkeys(machines, 0)
        for step in range(len(trace)):
            for kind, machine in machines.items():
                if read[step] is not None and state[kind] >= 0:
                    code = machine.labels.get(read[step])
                    known = code is not None
                    target = int(machine.transitions[state[kind], code]) if known else -1
                    self.moves[kind][state[kind], read[step], target] += 1
                    self._saw((kind, "move", state[kind], read[step]), trace, number, step)
                    state[kind] = target
                self.states[kind].append(state[kind])
            seen, done = trace.observations[step], trace.actions[step]
            for kind, machine in machines.items():
                asked = seen
                if machine.supplemented:
                    if state["transition"] < 0:
                        self.unasked[kind] += 1
                        continue
                    asked = (seen, state["transition"])
                answer = (state[kind], asked, done, answered(machine, trace, step))
                self.answers[kind][answer] += 1
                self._saw((kind, *answer), trace, number, step)
            if min(state.values()) >= 0:
                situation = (seen, *state.values(), done)
                self.situations[situation] += 1
                if step == len(trace) - 1 and trace.terminated:
                    self.ended[situation] += 1


def answered(machine, trace, step):
    """What a trace says where the machine is asked."""
    if machine.predicts == "observation":
        return trace.observations[step + 1]
    if machine.predicts == "terminated":
        return trace.terminated and step == len(trace) - 1
    if machine.predicts == "reward":
        value = trace.rewards[step]
    else:
        value = trace.columns[machine.predicts][step]
    return value if machine.digits is None else round(value, machine.digits)


def read_back(machines, shown):
    """A replay's columns, as the counters of `PlainReplay`."""
    alphabets, found = shown.alphabets, PlainReplay()
    actions = len(alphabets.actions)
    for kind, machine in machines.items():
        outputs = alphabets.outputs(machine.predicts)
        one = shown.machines[kind]
        found.answers[kind], found.moves[kind] = Counter(), Counter()
        if one.unqueried:
            found.unasked[kind] = one.unqueried
        for row in one.outputs:
            seen, done = divmod(int(row["query"]), actions)
            asked = alphabets.observations[seen] if not machine.supplemented else None
            if machine.supplemented:
                seen, q = divmod(seen, machines.transition.states)
                asked = (alphabets.observations[seen], q)
            answer = (
                int(row["state"]),
                asked,
                alphabets.actions[done],
                outputs[int(row["output"])],
            )
            assert answer not in found.answers[kind]
            found.answers[kind][answer] = int(row["count"])
            found._place((kind, *answer), row)
        for row in one.transitions:
            label = alphabets.labels[int(row["label"])]
            found.moves[kind][int(row["state"]), label, int(row["output"])] = int(row["count"])
            found._place((kind, "move", int(row["state"]), label), row)
    for row in shown.terminations:
        seen, *states, done = (int(part[0]) for part in shown.unpack(row["number"][None]))
        key = (alphabets.observations[seen], *states, alphabets.actions[done])
        found.situations[key], found.ended[key] = int(row["count"]), int(row["ended"])
    found.states = {kind: states.tolist() for kind, states in shown.states.items()}
    return found


def _place(self, what, row):
    self.shortest[what] = int(row["length"])
    self.earliest[what] = (int(row["early_step"]), int(row["early_trace"]))


PlainReplay._place = _place
