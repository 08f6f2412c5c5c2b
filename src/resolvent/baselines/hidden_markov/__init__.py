"""Task automata by hidden Markov models: traces of a task → its automaton."""

from resolvent.baselines.hidden_markov.learning import hmm

__all__ = ["hmm"]
