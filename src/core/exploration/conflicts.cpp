#include "conflicts.hpp"

#include <algorithm>

namespace resolvent {
namespace {

constexpr std::size_t most_dense = std::size_t{1} << 22;

}  // namespace

void QueriedSteps::forget(std::size_t keys) {
  dense_ = keys <= most_dense;
  sparse_.clear();
  if (!dense_) return;
  if (first_.size() < keys) first_.resize(keys, First{0, none, none});
  if (++trial_ == 0) {  // the counter wrapped around
    std::ranges::fill(first_, First{0, none, none});
    trial_ = 1;
  }
}

// Return the first step with a key, which may be `step` itself.
QueriedSteps::First QueriedSteps::first_with(std::size_t key, Id step, Id output) {
  const First now{trial_, step, output};
  if (!dense_) return sparse_.try_emplace(key, now).first->second;
  if (first_[key].trial != trial_) first_[key] = now;
  return first_[key];
}

StepConflicts QueriedSteps::conflicts(std::span<const Id> transitions, Id labels, std::span<const Id> output,
                                      const Condition& condition, Row enough) {
  const auto width = static_cast<std::size_t>(labels);
  const std::size_t states = width == 0 ? 1 : transitions.size() / width;
  forget(states * condition.states * queries_);
  StepConflicts result;
  for (std::size_t trace = 0; trace + 1 < offsets_.size(); ++trace) {
    Id state = 0;
    const auto end = static_cast<std::size_t>(offsets_[trace + 1]);
    for (auto row = static_cast<std::size_t>(offsets_[trace]); row < end; ++row) {
      const Id label = read_[row];
      if (label != none && state != none)
        state = label < labels ? transitions[static_cast<std::size_t>(state) * width + static_cast<std::size_t>(label)]
                               : none;
      if (state == none) {
        ++result.lost;
        continue;
      }
      auto key = static_cast<std::size_t>(state);
      if (!condition.at.empty()) {
        if (condition.at[row] == none) continue;
        key = key * condition.states + static_cast<std::size_t>(condition.at[row]);
      }
      key = key * queries_ + static_cast<std::size_t>(query_[row]);
      const First before = first_with(key, static_cast<Id>(row), output[row]);
      if (before.output == output[row]) continue;
      if (result.count++ == 0) {
        result.bad = static_cast<Row>(row);
        result.witness = before.step;
      }
      if (result.count >= enough) return result;
    }
  }
  return result;
}

}  // namespace resolvent
