// Answers of states that are not known for sure: counts are expected numbers of times.
#pragma once

#include <span>
#include <vector>

#include "answer_cells.hpp"
#include "log_evidence.hpp"

namespace resolvent {

// ln of how likely the answers of one state are, by the model of log_evidence.hpp. `counts` is by
// cell, and need not hold whole numbers.
double log_soft_answers(const AnswerCells& cells, std::span<const double> counts, const NoiseShape& noise);

// The same for all states under the noise that makes it greatest, climbing from `noise`, which is
// changed. `counts` is [state, cell].
double fitted_log_soft_answers(const AnswerCells& cells, std::span<const double> counts, NoiseShape& noise);

// How likely each answer is to be given next, by cell, if one state gave these ones so far.
std::vector<double> answer_chances(const AnswerCells& cells, std::span<const double> counts, const NoiseShape& noise);

}  // namespace resolvent
