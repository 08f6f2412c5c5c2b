// Prefix tree → automaton, by searching among the tables of transitions for the
// smallest that explains the answers. Needs far fewer traces than merging does
// (docs/decisions/inference.md).
#pragma once

#include <cstdint>
#include <vector>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "red_blue.hpp"

namespace resolvent {

struct SearchOptions {
  std::uint64_t seed = 0;
  std::int64_t budget = 0;  // nodes to look at, at most

  // A machine that explains the tree, if one is known: the state of each node, below
  // `tree.size()`.
  std::vector<Id> known = {};
  bool merges = true;  // whether to look for a machine by merging; if none is known, always
};

// Begins with the machine that is known and the automaton that `Order::edsm` finds, or
// where that takes long looks for it later, and returns the smallest one met, within the
// budget or until it cannot be improved. When time runs out it returns the best it has.
Automaton search_states(const PrefixTree& tree, const SearchOptions& options, Pulse& pulse);

}  // namespace resolvent
