// Expectation step for latent states: expected counts of transitions and outputs under given probabilities.
#pragma once

#include <span>

#include "samples.hpp"

namespace resolvent {

// Steps of all traces; trace i owns steps offsets[i] to offsets[i + 1]. A step reads a source, which may
// change the state, and then has an output in the new state. Either may be `none`.
struct Steps {
  std::span<const Id> source;
  std::span<const Id> output;
  std::span<const Row> offsets;
};

// transitions[(source * states + before) * states + after] and outputs[output * states + state].
template <typename Number>
struct LatentTables {
  std::span<Number> transitions;
  std::span<Number> outputs;
};

// Maximum number of states of the tables.
inline constexpr Id most_latent_states = 32;

// Add the expected number of times of each transition and output to `counts`. Every trace begins in state
// 0. Return the log-likelihood of all outputs. Results do not depend on the number of processors.
double expect_transitions(const Steps& steps, Id states, LatentTables<const float> likely, LatentTables<double> counts);

}  // namespace resolvent
