// The expectation step of Baum-Welch for a hidden layer beside a place that is seen.
#pragma once

#include <span>

#include "samples.hpp"

namespace resolvent {

// Traces of moves. All moves of a trace but a last one that is paid say from where
// to where it went; a paid one leads to the end, in which there is one layer only.
struct Moves {
  std::span<const Id> move;      // its code, or for a paid one the code among those
  std::span<const Row> offsets;  // trace i owns moves offsets[i] .. offsets[i + 1]
  std::span<const Id> paid;      // by trace: 1 where the last move is paid
};

// By move, the layer before it and, but for paid moves, the layer after it.
template <typename Number>
struct LayerTables {
  std::span<Number> onward;  // move * layers * layers + before * layers + after
  std::span<Number> paid;    // move * layers + before
};

// Every trace begins in layer 0. Given the probability of each move and the layer
// after it, adds to `counts` how often each is expected to have been made, and
// returns the logarithm of the probability of all traces.
//
// Scaled forward and backward passes; only the layers that fit what was seen are
// looked at, so a move costs the square of their number.
double expect(const Moves& moves, Id layers, LayerTables<const double> probabilities, LayerTables<double> counts);

}  // namespace resolvent
