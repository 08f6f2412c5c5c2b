// Expectation step of Baum-Welch for a latent layer beside an observed position.
#pragma once

#include <span>

#include "samples.hpp"

namespace resolvent {

// Traces of steps. The code of a step has the positions before and after it; the last step of a trace may
// be a rewarded one, which leads to the end, with a single layer.
struct LayerSteps {
  std::span<const Id> step;      // code of the step, or for a rewarded one its code among those
  std::span<const Row> offsets;  // trace i owns steps offsets[i] .. offsets[i + 1]
  std::span<const Id> rewarded;  // by trace: 1 if the last step is rewarded
};

// By step, layer before it and, except for rewarded steps, layer after it.
template <typename Number>
struct LayerTables {
  std::span<Number> onward;    // step * layers * layers + before * layers + after
  std::span<Number> rewarded;  // step * layers + before
};

// Every trace begins in layer 0. Given the probability of each step and the layer after it, add the
// expected number of each to `counts`, and return the log-likelihood of all traces.
//
// Scaled forward and backward passes over the layers of the observed positions only, so that a step costs
// the square of their number.
double expect_layers(const LayerSteps& steps, Id layers, LayerTables<const double> probabilities,
                     LayerTables<double> counts);

}  // namespace resolvent
