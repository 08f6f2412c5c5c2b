// Machine tables + labels → the machine's state at every row.
#pragma once

#include <span>

#include "samples.hpp"

namespace resolvent {

// `transitions[state * labels + label]` is the next state, or `none` where it
// was never seen; from there on the state is `none` until the trace ends.
// A `beta` of `none` reads nothing; one at or above `labels` is unknown to the
// machine and leads to `none` as well.
void walk_states(std::span<const Id> transitions, Id labels, std::span<const Id> beta,
            std::span<const Row> offsets, std::span<Id> states);

}  // namespace resolvent
