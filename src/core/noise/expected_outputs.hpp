// Likelihood of outputs with expected (fractional) counts.
#pragma once

#include <span>
#include <vector>

#include "log_evidence.hpp"
#include "output_cells.hpp"

namespace resolvent {

// Log-likelihood of the outputs of one state under the model of log_evidence.hpp, with expected counts by
// cell.
double log_expected_outputs(const OutputCells& cells, std::span<const double> counts, const NoiseShape& noise);

// The same for all states, maximized over the noise by climbing from `noise`, which is updated. `counts` is
// [state, cell].
double fitted_log_expected_outputs(const OutputCells& cells, std::span<const double> counts, NoiseShape& noise);

// Posterior predictive probabilities of the outputs of one state, by cell.
std::vector<double> output_probabilities(const OutputCells& cells, std::span<const double> counts,
                                         const NoiseShape& noise);

}  // namespace resolvent
