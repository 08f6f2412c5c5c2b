"""Evidence in plain Python, straight from the definitions, for the tests to compare with."""

from collections import defaultdict

from resolvent.machines import UNSEEN
from resolvent.preprocess.timing import LabelTiming


def labels_before(trace, t, timing):
    """The labels read before step t, in order; see docs/decisions/preprocess.md."""
    start = 1 if timing is LabelTiming.CURRENT else 0
    return trace.labels[start : t if timing is LabelTiming.LAGGED else t + 1]


def asked(pair, kind, trace, t):
    """(history, state, observation as the machine sees it, action, output) at a step."""
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
            yield (number, t), asked(pair, kind, trace, t)


def answers(pair, kind, traces):
    """(state, observation, action, output) → (how often, where first)."""
    found = defaultdict(list)
    for place, (_, state, *rest) in steps(pair, kind, traces):
        if state is not UNSEEN:
            found[(state, *rest)].append(place)
    return {
        key: (len(places), min(places, key=lambda place: place[::-1]))
        for key, places in found.items()
    }


def moves(pair, kind, traces):
    """(state, label, target) → (how often, where first)."""
    machine = getattr(pair, kind)
    found = defaultdict(list)
    for number, trace in enumerate(traces):
        read = ()
        for t in range(len(trace.actions)):
            history = labels_before(trace, t, pair.timing)
            assert len(history) - len(read) in (0, 1)
            if len(history) > len(read):
                before, after = machine.run(read), machine.run(history)
                if before is not UNSEEN and after is not UNSEEN:
                    found[before, history[-1], after].append((number, t))
            read = history
    return {
        key: (len(places), min(places, key=lambda place: place[::-1]))
        for key, places in found.items()
    }


def table(pair, kind, traces):
    """What the traces show: state → (observation, action) → output."""
    shown = defaultdict(dict)
    for state, observation, action, output in answers(pair, kind, traces):
        shown[state][observation, action] = output
    return shown


def telling(shown, one, other):
    """The queries that both states were asked and answered differently."""
    both = shown[one].keys() & shown[other].keys()
    return {query for query in both if shown[one][query] != shown[other][query]}


def shortest_suffix(machine, shown, one, other):
    """The first suffix, by length and then label by label, that tells two states apart."""
    met, queue = {(one, other)}, [((), one, other)]
    moving = [label for code, label in enumerate(machine.labels) if code not in machine.trivial]
    for suffix, q, p in queue:
        if telling(shown, q, p):
            return suffix
        for label in moving:
            pair = machine.step(q, label), machine.step(p, label)
            if UNSEEN not in pair and pair not in met:
                met.add(pair)
                queue.append(((*suffix, label), *pair))
    return None


def histories(pair, kind, traces):
    """Every label history met, trivial labels left out → its own answers."""
    machine = getattr(pair, kind)
    trivial = set(machine.trivial_labels)
    found = {(): {}}
    for _, (history, _, observation, action, output) in steps(pair, kind, traces):
        kept = tuple(label for label in history if label not in trivial)
        for length in range(len(kept)):
            found.setdefault(kept[:length], {})
        found.setdefault(kept, {})[observation, action] = output
    return found


def rules_out(machine, shown, told, history, other):
    """Whether the evidence at and below a history differs from what another state shows."""
    for longer, own in told.items():
        if longer[: len(history)] != history:
            continue
        state = machine.run(longer[len(history) :], other)
        if state is UNSEEN:
            continue
        theirs = shown[state]
        if any(theirs.get(query, output) != output for query, output in own.items()):
            return True
    return False


def is_part(part, whole):
    """Whether `whole` answers all that `part` does, alike, wherever labels lead both."""
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
            asked = states[kind].values() if state is None else [states[kind][state]]
            if any(other.output(twin, observation, action) != output for twin in asked):
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
