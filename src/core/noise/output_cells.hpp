// The outputs observed for each query. A cell is one output of one query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

struct OutputCells {
  std::vector<Id> first;            // query q has the cells first[q] .. first[q + 1], by output
  std::vector<Id> query;            // by cell
  std::vector<std::int64_t> count;  // by cell
  std::vector<Id> of_row;           // none if a row has no output, or none of these

  [[nodiscard]] std::size_t queries() const { return first.size() - 1; }
  [[nodiscard]] std::size_t size() const { return query.size(); }
  [[nodiscard]] Id outputs(std::size_t total) const { return first[total + 1] - first[total]; }
  [[nodiscard]] std::int64_t total(std::size_t query_id) const {
    std::int64_t total = 0;
    for (Id cell = first[query_id]; cell < first[query_id + 1]; ++cell) total += count[static_cast<std::size_t>(cell)];
    return total;
  }
};

OutputCells number_outputs(const Outputs& outputs);

// By cell: whether an output recurs after the same labels (the whole sequence, or the last one, two or
// three) more often than it would by chance. Noise does not; the output of a state does, however rare.
std::vector<std::uint8_t> recurring_outputs(const OutputCells& cells, const HistoryTree& histories);

// The outputs that may distinguish states if outputs deviate with probability `noise`: those more frequent
// than that explains by `deviations` standard deviations, and the recurring ones. Queries with a single
// such output are dropped; queries and cells are renumbered.
OutputCells informative_outputs(const OutputCells& cells, const std::vector<std::uint8_t>& recurring, double noise,
                                double deviations);

}  // namespace resolvent
