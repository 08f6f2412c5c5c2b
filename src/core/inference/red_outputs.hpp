// Outputs of red states, by query.
//
// The order `rpni` compares each blue state with all red states, and most pairs conflict at once. A scan of
// columns finds that without visiting the states.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

class RedOutputs {
 public:
  // Record an output of a red state, by the state's number.
  void add(std::size_t red, Output output) {
    if (full()) return;
    std::vector<Id>& column = columns_[output.alpha];
    if (red >= column.size()) {
      cells_ += red + 1 - column.size();
      column.resize(red + 1, none);
    }
    column[red] = output.output;
  }

  // Return the first red state in `red` .. `reds` - 1 with no recorded conflict with the outputs; `reds` if
  // there is none.
  [[nodiscard]] std::size_t first_without_conflict(std::size_t red, std::size_t reds,
                                                   std::span<const Output> outputs) const {
    if (full()) return red;
    while (red < reds) {
      const std::size_t before = red;
      for (const Output output : outputs) {
        const auto column_at = columns_.find(output.alpha);
        if (column_at == columns_.end()) continue;
        const std::vector<Id>& column = column_at->second;  // later red states have no output for this alpha
        while (red < column.size() && column[red] != none && column[red] != output.output) ++red;
      }
      if (red == before) return red;
    }
    return reds;
  }

 private:
  static constexpr std::size_t most_cells = std::size_t{1} << 25;  // 128 MB

  [[nodiscard]] bool full() const { return cells_ > most_cells; }

  std::unordered_map<Id, std::vector<Id>> columns_;  // by alpha, then by red state; none if unknown
  std::size_t cells_ = 0;
};

}  // namespace resolvent
