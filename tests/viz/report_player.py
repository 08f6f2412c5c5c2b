"""The report's player as a test sees it, and what it should show, walked label by label."""

SHOWN = """() => {
  const one = (selector) => document.querySelector(selector).textContent;
  const lit = (kind, what, names) =>
    [...document.querySelectorAll(`#${kind} ${what}.lit`)].map((element) =>
      names.map((name) => Number(element.dataset[name])));
  const both = (look) => ({ transition: look("transition"), reward: look("reward") });
  return {
    trace: Number(one("#trace option:checked").split(" ")[0].replace(",", "")),
    step: Number(/^step (\\d+) of/.exec(one("#where"))[1]),
    slider: Number(document.querySelector("#position").value),
    rows: [...document.querySelectorAll("#steps tr.current td:first-child")]
      .map((cell) => Number(cell.textContent)),
    facts: [...document.querySelectorAll("#moment b")].map((fact) => fact.textContent),
    captions: both((kind) => one(`#${kind} .now`)),
    states: both((kind) => lit(kind, ".rs-state", ["state"]).flat()),
    arrows: both((kind) => lit(kind, ".rs-arrow", ["from", "to"])),
  };
}"""


class Player:
    """Reads off the page what the player shows."""

    def __init__(self, page, traces):
        self.page = page
        self.traces = traces

    def shown(self):
        return self.page.evaluate(SHOWN)

    @property
    def place(self):
        """The numbers of the trace and the step that are shown."""
        shown = self.shown()
        return shown["trace"], shown["step"]

    @property
    def last(self):
        """The last step of the trace that is played."""
        return len(self.traces[self.place[0]]) - 1

    def shows(self, step, states_at):
        """Hold every part of the page to one step; `states_at` gives both states at a step."""
        shown = self.shown()
        trace = self.traces[shown["trace"]]
        assert (shown["step"], shown["slider"], shown["rows"]) == (step, step, [step])
        states, before = states_at(trace, step), states_at(trace, step - 1) if step else None
        for place, kind in enumerate(("transition", "reward")):
            assert shown["states"][kind] == [states[place]]
            assert shown["captions"][kind] == f"state {states[place]}"
            moved = before is not None and before[place] != states[place]
            assert shown["arrows"][kind] == ([[before[place], states[place]]] if moved else [])
        seen, _, remembered, done, following, paid = shown["facts"]
        assert seen == str(trace.observations[step])
        assert remembered == f"TM state {states[0]}"
        assert done == str(trace.actions[step])
        assert following == str(trace.observations[step + 1])
        assert float(paid) == trace.rewards[step]


def house_states(trace, step):
    """The key and the toilet, as far as the labels up to a step tell, the first left out."""
    read = frozenset().union(*trace.labels[1 : step + 1])
    return int("key" in read), int("toilet" in read)


def walked_states(pair):
    """Both states by reading one label after the other, the first left out."""

    def states_at(trace, step):
        found = []
        for machine in (pair.transition, pair.reward):
            state = 0
            for label in trace.labels[1 : step + 1]:
                state = machine.step(state, label)
            found.append(state)
        return tuple(found)

    return states_at
