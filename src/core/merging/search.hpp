// Prefix tree → automaton, by searching among the tables of transitions for the
// smallest that explains the answers. Needs far fewer traces than merging does
// (docs/decisions/search.md).
#pragma once

#include <cstdint>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "red_blue.hpp"

namespace resolvent {

struct SearchOptions {
  std::uint64_t seed = 0;
  std::int64_t budget = 0;  // nodes to look at, at most
};

// Begins with the automaton that `Order::edsm` finds, or where that takes long looks
// for it later, and returns the smallest one met, within the budget or until it
// cannot be improved. Runs out of time with an exception only as long as it has no
// automaton; later it returns the best it has.
Automaton search_states(const PrefixTree& tree, const SearchOptions& options, Pulse& pulse);

}  // namespace resolvent
