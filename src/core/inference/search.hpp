// Prefix tree → automaton, by searching transition tables for the smallest that explains the outputs. Needs
// far fewer traces than merging (docs/decisions/inference.md).
#pragma once

#include <cstdint>
#include <vector>

#include "prefix_tree.hpp"
#include "red_blue.hpp"
#include "watch.hpp"

namespace resolvent {

struct SearchOptions {
  std::uint64_t seed = 0;
  std::int64_t budget = 0;  // maximum number of nodes to visit

  // The state of each node under a known machine that explains the tree, below `tree.size()`.
  std::vector<Id> known = {};
  bool merges = true;  // also look for a machine by merging; always if none is known
};

// Start with the known machine and the automaton of `Order::edsm`, which is postponed if it takes long.
// Return the smallest machine found within the budget, or before the time limit.
Automaton search_states(const PrefixTree& tree, const SearchOptions& options, Watch& watch);

}  // namespace resolvent
