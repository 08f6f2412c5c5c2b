// Counts of outputs by state, or by the sources read before in the same state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "latent_expectation.hpp"

namespace resolvent {

// Count outputs by [state, output]; table[source * states + state] is the next state. Every trace begins in
// state 0.
std::vector<std::int64_t> output_counts(const Steps& steps, std::span<const Id> table, Id states, Id outputs);

// Count the outputs in `state` by [source read before, output]. `states` has the state at each step, after
// its source. A visit starts when the state is entered, without the source that leads to it, and ends when
// it is left. Every trace begins in state 0.
std::vector<std::int64_t> output_counts_after(const Steps& steps, std::span<const Id> states, Id state, Id sources,
                                              Id outputs);

}  // namespace resolvent
