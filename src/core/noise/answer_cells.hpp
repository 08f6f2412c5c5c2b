// Which answers each query ever had. A cell is one answer to one query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

struct AnswerCells {
  std::vector<Id> first;            // query a has the cells first[a] .. first[a + 1], by answer
  std::vector<Id> query;         // by cell
  std::vector<std::int64_t> count;  // by cell: how often the answer was given
  std::vector<Id> of_row;           // none where a row answers nothing, or nothing that is kept

  [[nodiscard]] std::size_t queries() const { return first.size() - 1; }
  [[nodiscard]] std::size_t size() const { return query.size(); }
  [[nodiscard]] Id answers(std::size_t asked) const { return first[asked + 1] - first[asked]; }
  [[nodiscard]] std::int64_t asked(std::size_t query_id) const {
    std::int64_t total = 0;
    for (Id cell = first[query_id]; cell < first[query_id + 1]; ++cell)
      total += count[static_cast<std::size_t>(cell)];
    return total;
  }
};

AnswerCells number_answers(const Answers& answers);

// By cell: whether an answer comes again after the same labels more often than it would if it had
// nothing to do with them: all labels so far, or the last one, two or three. What noise gives does
// not; what a state answers does, however rare it is.
std::vector<std::uint8_t> returning_answers(const AnswerCells& cells, const HistoryTree& histories);

// What may tell states apart if answers are off the main one with probability `noise`: the
// answers that were given more often than that explains, by `deviations` standard deviations,
// and those that return. Of the queries it is those with two such answers. Queries and cells
// are numbered anew.
AnswerCells telling_answers(const AnswerCells& cells, const std::vector<std::uint8_t>& returning, double noise,
                            double deviations);

}  // namespace resolvent
