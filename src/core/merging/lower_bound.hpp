// How few states a machine can possibly have: nodes of the prefix tree that
// pairwise conflict need a state each.
#pragma once

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// At least 1. Looks among the nodes with most answers below them, so a larger
// set of conflicting nodes may exist.
Id fewest_states(const PrefixTree& tree, Pulse& pulse);

}  // namespace resolvent
