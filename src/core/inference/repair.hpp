// An automaton that explains a prefix tree → one with fewer states that does so too, by
// taking weakly supported states out and changing the few transitions that this leaves wrong.
#pragma once

#include <cstdint>
#include <span>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "red_blue.hpp"

namespace resolvent {

struct RepairOptions {
  std::uint64_t seed = 0;
  std::int64_t budget = 0;  // nodes to look at, at most
};

// Never has more states than what it is given, as `transitions` between `states` states of
// which 0 is the first. A time limit ends it with the best so far.
Automaton repair_states(const PrefixTree& tree, Id states, std::span<const Transition> transitions,
                        const RepairOptions& options, Pulse& pulse);

}  // namespace resolvent
