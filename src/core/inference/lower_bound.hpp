// How few states a machine can possibly have: nodes of the prefix tree that
// pairwise conflict need a state each.
#pragma once

#include <cstdint>
#include <span>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// At least 1. Looks among the nodes with most answers below them, so a larger
// set of conflicting nodes may exist.
Id fewest_states(const PrefixTree& tree, Pulse& pulse);

// The same for a machine that is known, whose state at each node is `state_of`: looks among
// the nodes of each state that have most answers below them, and compares about as many nodes
// as `work` says.
Id fewest_states(const PrefixTree& tree, std::span<const Id> state_of, std::int64_t work, Pulse& pulse);

}  // namespace resolvent
