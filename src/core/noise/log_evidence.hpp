// Log evidence of a machine with noisy outputs.
//
// A row is a state and a query. One of the k outputs of the query is the main output of the row: latent,
// with the shares of outputs over all rows of the query as prior. Given the main output y, the outputs of
// the row are Dirichlet-multinomial around strength * ((1 - share) [j = y] + share/k): most outputs are the
// main one, and rows differ in their noise. Strength and share maximize the likelihood.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arithmetic.hpp"
#include "output_cells.hpp"
#include "row_likelihood.hpp"
#include "samples.hpp"

namespace resolvent {

// Transitions of a machine: state * labels + label → state, or none if the label is never read.
using Transitions = std::vector<Id>;

struct MachineEvidence {
  double log_evidence = 0.0;  // of outputs and transitions
  NoiseShape noise;
  std::vector<std::uint8_t> read;  // state * labels + label: whether it is ever read
};

// Log prior probability of the transitions: each one that is read is a loop with one unknown probability,
// and otherwise leads to any other state. All orders of the states but the initial one count as the same
// machine.
double log_transitions(std::int64_t states, std::int64_t read, std::int64_t staying);

// Log-likelihood of all outputs. `counts` is [state, cell].
double log_outputs(const OutputCells& cells, std::span<const Id> counts, const NoiseShape& noise);

// The same, maximized over a grid of noise by climbing from `noise`, which is updated.
double fitted_log_outputs(const OutputCells& cells, std::span<const Id> counts, NoiseShape& noise);

// Output counts by [state, cell]. Rows without a state (none) are not counted.
std::vector<Id> count_outputs(const OutputCells& cells, std::span<const Id> state, Id states);

// Read all labels with a machine and compute its evidence. Fitting starts from `noise`.
MachineEvidence weigh_machine(const OutputCells& cells, const Labels& labels, const Transitions& transitions, Id states,
                              const NoiseShape& noise);

// Share of outputs that differ from the most frequent one of their row.
double deviating_share(const OutputCells& cells, const Labels& labels, const Transitions& transitions, Id states);

// Index of the grid value with the smallest ratio to a value.
template <std::size_t Size>
std::size_t nearest(const std::array<double, Size>& grid, double value) {
  std::size_t best = 0;
  for (std::size_t at = 1; at < Size; ++at)
    if (std::abs(natural_log(grid[at] / value)) < std::abs(natural_log(grid[best] / value))) best = at;
  return best;
}

}  // namespace resolvent
