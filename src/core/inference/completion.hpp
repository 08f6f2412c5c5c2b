// Interrupted merging → a complete automaton, which may have wrong outputs for some rows.
#pragma once

#include <span>

#include "prefix_tree.hpp"
#include "red_blue.hpp"
#include "samples.hpp"

namespace resolvent {

// Merge each undecided node into the state with which it agrees most, in one cheap pass. `so_far` has the
// states and events so far; `settled` has the state of each node, or none, and the ancestors of a settled
// node are settled. The output of a state is the most frequent one, of equals the lowest; `wrong` counts
// the rows with another output.
Automaton completed(const PrefixTree& tree, Automaton so_far, std::span<const Id> settled);

}  // namespace resolvent
