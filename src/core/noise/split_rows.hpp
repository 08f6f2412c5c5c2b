// Whether rows of answers are one or two: the odds of keeping states apart, or of telling the
// answers of a state apart by something that happened before.
#pragma once

#include <span>
#include <vector>

#include "answer_cells.hpp"
#include "row_weights.hpp"
#include "samples.hpp"

namespace resolvent {

// Two states, what their rows are worth apart against together, and what that stands on: the
// queries that speak for two states, how often these were asked, and the one that does most.
struct StatePair {
  double log_odds = 0.0;
  Id queries = 0;
  Row asked = 0;
  Id query = none;
};

// Pairs stand as (0, 1), (0, 2), … (1, 2) and so on. `counts` is [state, cell].
std::vector<StatePair> weigh_pairs(const AnswerCells& cells, std::span<const Id> counts, Id states,
                                   const NoiseShape& noise);

// A row of answers that are not all the same, and what it is worth in parts.
struct SplitRow {
  Id feature = 0;
  Id state = 0;
  Id query = 0;
  double log_odds = 0.0;
  Row asked = 0;
  Row odd = 0;        // answers that are not the most frequent one of the row
  Row odd_apart = 0;  // or of its part
};

// Splits the answers of each row by features: `values` holds one after another a value for each
// answer, none where it does not count. Returns rows whose odds are above `least`.
std::vector<SplitRow> split_rows(const AnswerCells& cells, std::span<const Id> state, std::span<const Id> values,
                                 const NoiseShape& noise, double least);

}  // namespace resolvent
