// What red states answer, query by query, in order of promotion.
//
// The first order of merging holds every blue state against all red ones, and most of them
// contradict it at once. Columns of outputs tell so by a scan, without a look at the states.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

class RedAnswers {
 public:
  // Takes note of an answer of a red state, by the state's number.
  void add(std::size_t red, Answer answer) {
    if (full()) return;
    std::vector<Id>& column = columns_[answer.alpha];
    if (red >= column.size()) {
      cells_ += red + 1 - column.size();
      column.resize(red + 1, none);
    }
    column[red] = answer.output;
  }

  // The number of the first red state, from `red` on and below `reds`, that contradicts none of
  // the answers as far as is known here; `reds` if there is none.
  [[nodiscard]] std::size_t first_without_conflict(std::size_t red, std::size_t reds,
                                                   std::span<const Answer> answers) const {
    if (full()) return red;
    while (red < reds) {
      const std::size_t before = red;
      for (const Answer answer : answers) {
        const auto found = columns_.find(answer.alpha);
        if (found == columns_.end()) continue;
        const std::vector<Id>& column = found->second;  // no red state beyond its end was asked
        while (red < column.size() && column[red] != none && column[red] != answer.output) ++red;
      }
      if (red == before) return red;
    }
    return reds;
  }

 private:
  static constexpr std::size_t most_cells = std::size_t{1} << 25;  // 128 MB

  [[nodiscard]] bool full() const { return cells_ > most_cells; }

  std::unordered_map<Id, std::vector<Id>> columns_;  // by alpha, then by red state; none where not known
  std::size_t cells_ = 0;
};

}  // namespace resolvent
