// An automaton that explains a prefix tree → one with fewer states that does so, too, by merging weakly
// supported states and repairing the few transitions that then conflict.
#pragma once

#include <cstdint>
#include <span>

#include "prefix_tree.hpp"
#include "red_blue.hpp"
#include "watch.hpp"

namespace resolvent {

struct RepairOptions {
  std::uint64_t seed = 0;
  std::int64_t budget = 0;  // maximum number of nodes to visit
};

// The machine is given by `transitions` between `states` states, of which 0 is initial. The result never
// has more states. At the time limit, returns the best so far.
Automaton repair_states(const PrefixTree& tree, Id states, std::span<const Transition> transitions,
                        const RepairOptions& options, Watch& watch);

}  // namespace resolvent
