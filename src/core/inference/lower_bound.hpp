// A lower bound on the number of states: nodes of the prefix tree that conflict pairwise need different
// states.
#pragma once

#include <cstdint>
#include <span>

#include "prefix_tree.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// At least 1. Only the nodes with most outputs below them are compared, so that larger sets of conflicting
// nodes may exist.
Id fewest_states(const PrefixTree& tree, Watch& watch);

// The same for a known machine with state `state_of[node]`: compares the nodes of each state with most
// outputs below them, about `work` pairs of nodes.
Id fewest_states(const PrefixTree& tree, std::span<const Id> state_of, std::int64_t work, Watch& watch);

}  // namespace resolvent
