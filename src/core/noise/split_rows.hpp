// Log odds of keeping rows of outputs apart: two states, or one state split by an earlier event.
#pragma once

#include <span>
#include <vector>

#include "output_cells.hpp"
#include "row_likelihood.hpp"
#include "samples.hpp"

namespace resolvent {

// Log odds that two states have different outputs; the queries that support it, the number of their
// outputs, and the query with the highest odds.
struct StatePair {
  double log_odds = 0.0;
  Id queries = 0;
  Row total = 0;
  Id query = none;
};

// Pairs in the order (0, 1), (0, 2), … (1, 2), … `counts` is [state, cell].
std::vector<StatePair> weigh_pairs(const OutputCells& cells, std::span<const Id> counts, Id states,
                                   const NoiseShape& noise);

// A row with more than one output, and the log odds of splitting it.
struct SplitRow {
  Id feature = 0;
  Id state = 0;
  Id query = 0;
  double log_odds = 0.0;
  Row total = 0;
  Row deviating = 0;        // outputs that differ from the most frequent one of the row
  Row deviating_apart = 0;  // the same for the parts of the row
};

// Split each row by features: `values` has one column per feature with a value for each output, none if it
// is left out. Return the rows with log odds above `least`.
std::vector<SplitRow> split_rows(const OutputCells& cells, std::span<const Id> state, std::span<const Id> values,
                                 const NoiseShape& noise, double least);

}  // namespace resolvent
