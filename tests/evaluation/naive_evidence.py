"""Evidence in plain Python, straight from the definitions, for the tests to compare with."""

from collections import defaultdict

from resolvent.machines import UNSEEN
from resolvent.preprocess.timing import LabelTiming


def labels_before(trace, t, timing):
    """The labels read before step t, in order; see docs/decisions/preprocess.md."""
    start = 1 if timing is LabelTiming.CURRENT else 0
    return trace.labels[start : t if timing is LabelTiming.LAGGED else t + 1]


def query_at(pair, kind, trace, t):
    """(labels read, state, observation as the machine sees it, action, output) at a step."""
    machine = getattr(pair, kind)
    history = labels_before(trace, t, pair.timing)
    observation = trace.observations[t]
    if kind == "transition":
        output = trace.observations[t + 1]
    else:
        output = trace.rewards[t]
        if machine.digits is not None:
            output = round(output, machine.digits)
        if machine.supplemented:
            observation = (observation, pair.transition.run(history))
    return history, machine.run(history), observation, trace.actions[t], output


def steps(pair, kind, traces):
    for number, trace in enumerate(traces):
        for t in range(len(trace.actions)):
            yield (number, t), query_at(pair, kind, trace, t)


def output_counts(pair, kind, traces):
    """(state, observation, action, output) → (count, first location)."""
    counts = defaultdict(list)
    for place, (_, state, *rest) in steps(pair, kind, traces):
        if state is not UNSEEN:
            counts[(state, *rest)].append(place)
    return {
        key: (len(places), min(places, key=lambda place: place[::-1]))
        for key, places in counts.items()
    }


def transition_counts(pair, kind, traces):
    """(state, label, target) → (count, first location)."""
    machine = getattr(pair, kind)
    counts = defaultdict(list)
    for number, trace in enumerate(traces):
        read = ()
        for t in range(len(trace.actions)):
            history = labels_before(trace, t, pair.timing)
            assert len(history) - len(read) in (0, 1)
            if len(history) > len(read):
                before, after = machine.run(read), machine.run(history)
                if before is not UNSEEN and after is not UNSEEN:
                    counts[before, history[-1], after].append((number, t))
            read = history
    return {
        key: (len(places), min(places, key=lambda place: place[::-1]))
        for key, places in counts.items()
    }


def table(pair, kind, traces):
    """The outputs of the traces: state → (observation, action) → output."""
    outputs = defaultdict(dict)
    for state, observation, action, output in output_counts(pair, kind, traces):
        outputs[state][observation, action] = output
    return outputs


def distinguishing_queries(outputs, first, second):
    """The queries with different outputs in two states."""
    both = outputs[first].keys() & outputs[second].keys()
    return {query for query in both if outputs[first][query] != outputs[second][query]}


def shortest_suffix(machine, outputs, first, second):
    """The first suffix, by length and then label by label, that distinguishes two states."""
    visited, queue = {(first, second)}, [((), first, second)]
    moving = [label for code, label in enumerate(machine.labels) if code not in machine.trivial]
    for suffix, q, p in queue:
        if distinguishing_queries(outputs, q, p):
            return suffix
        for label in moving:
            pair = machine.step(q, label), machine.step(p, label)
            if UNSEEN not in pair and pair not in visited:
                visited.add(pair)
                queue.append(((*suffix, label), *pair))
    return None


def label_sequences(pair, kind, traces):
    """Every label sequence of the traces, without trivial labels → its outputs."""
    machine = getattr(pair, kind)
    trivial = set(machine.trivial_labels)
    sequences = {(): {}}
    for _, (history, _, observation, action, output) in steps(pair, kind, traces):
        kept = tuple(label for label in history if label not in trivial)
        for length in range(len(kept)):
            sequences.setdefault(kept[:length], {})
        sequences.setdefault(kept, {})[observation, action] = output
    return sequences


def rules_out(machine, outputs, sequences, history, other):
    """Whether the evidence at and below a label sequence differs from that of another state."""
    for longer, own in sequences.items():
        if longer[: len(history)] != history:
            continue
        state = machine.run(longer[len(history) :], other)
        if state is UNSEEN:
            continue
        theirs = outputs[state]
        if any(theirs.get(query, output) != output for query, output in own.items()):
            return True
    return False


def is_part(part, whole):
    """Whether `whole` has all outputs of `part` in the states that the same labels reach."""
    if part.timing is not whole.timing or set(part) != set(whole):
        return False
    states = {}
    for kind in part:
        one, other = part[kind], whole[kind]
        states[kind] = partners(one, other)
        if one.supplemented != other.supplemented or states[kind] is None:
            return False
        for state, observation, action, output in one.entries():
            if one.supplemented:
                observation = (observation[0], states["transition"][observation[1]])
            images = states[kind].values() if state is None else [states[kind][state]]
            if any(other.output(twin, observation, action) != output for twin in images):
                return False
    return True


def partners(part, whole):
    """The state of `whole` that goes with each state of `part`, or None."""
    partner, queue = {0: 0}, [0]
    for state in queue:
        for label in part.labels:
            target, twin = part.step(state, label), whole.step(partner[state], label)
            if target is UNSEEN:
                continue
            if target not in partner:
                queue.append(target)
            if twin is UNSEEN or partner.setdefault(target, twin) != twin:
                return None
    return partner
