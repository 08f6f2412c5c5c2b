"""What automata do, stepped through one row at a time, for tests to compare with."""

from itertools import pairwise


def unexplained(automaton, samples):
    """The rows that the automaton does not answer as they say, stepped through one by one."""
    step = dict(
        zip(
            zip(
                automaton.transition_state.tolist(),
                automaton.transition_label.tolist(),
                strict=True,
            ),
            automaton.transition_target.tolist(),
            strict=True,
        )
    )
    answer = dict(
        zip(
            zip(automaton.output_state.tolist(), automaton.output_alpha.tolist(), strict=True),
            automaton.output_value.tolist(),
            strict=True,
        )
    )
    wrong = []
    for start, stop in pairwise(samples.offsets.tolist()):
        state = 0
        for row in range(start, stop):
            if samples.beta[row] >= 0:
                state = step[state, int(samples.beta[row])]
            alpha = int(samples.alpha[row])
            if alpha >= 0 and answer.get((state, alpha)) != samples.output[row]:
                wrong.append(row)
    return wrong
