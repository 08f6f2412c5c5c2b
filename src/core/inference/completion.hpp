// Merging that was cut short → an automaton all the same, which may answer some rows wrongly.
#pragma once

#include <span>

#include "prefix_tree.hpp"
#include "red_blue.hpp"
#include "samples.hpp"

namespace resolvent {

// Sends what is not settled yet to the states with which it agrees most, in one cheap pass.
// `so_far` has the states found and the events; `settled` gives the state of each node, or
// none. The nodes above a settled one are settled. States then answer with what they answered
// most often, and of equals the lowest; `wrong` counts the rows that are answered otherwise.
Automaton completed(const PrefixTree& tree, Automaton so_far, std::span<const Id> settled);

}  // namespace resolvent
