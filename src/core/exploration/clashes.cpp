#include "clashes.hpp"

#include <algorithm>

namespace resolvent {
namespace {

constexpr std::size_t most_dense = std::size_t{1} << 22;

}  // namespace

void AskedSteps::forget(std::size_t keys) {
  dense_ = keys <= most_dense;
  sparse_.clear();
  if (!dense_) return;
  if (first_.size() < keys) first_.resize(keys, First{0, none, none});
  if (++trial_ == 0) {  // all numbers were given away once
    std::ranges::fill(first_, First{0, none, none});
    trial_ = 1;
  }
}

// That is `step` itself if there was none before.
AskedSteps::First AskedSteps::first_with(std::size_t key, Id step, Id answer) {
  const First now{trial_, step, answer};
  if (!dense_) return sparse_.try_emplace(key, now).first->second;
  if (first_[key].trial != trial_) first_[key] = now;
  return first_[key];
}

Clashes AskedSteps::clashes(std::span<const Id> transitions, Id labels, std::span<const Id> answer,
                            const Beside& beside, Row enough) {
  const auto width = static_cast<std::size_t>(labels);
  const std::size_t states = width == 0 ? 1 : transitions.size() / width;
  forget(states * beside.states * queries_);
  Clashes found;
  for (std::size_t trace = 0; trace + 1 < offsets_.size(); ++trace) {
    Id state = 0;
    const auto end = static_cast<std::size_t>(offsets_[trace + 1]);
    for (auto row = static_cast<std::size_t>(offsets_[trace]); row < end; ++row) {
      const Id label = read_[row];
      if (label != none && state != none)
        state = label < labels ? transitions[static_cast<std::size_t>(state) * width + static_cast<std::size_t>(label)]
                               : none;
      if (state == none) {
        ++found.lost;
        continue;
      }
      auto key = static_cast<std::size_t>(state);
      if (!beside.at.empty()) {
        if (beside.at[row] == none) continue;
        key = key * beside.states + static_cast<std::size_t>(beside.at[row]);
      }
      key = key * queries_ + static_cast<std::size_t>(query_[row]);
      const First before = first_with(key, static_cast<Id>(row), answer[row]);
      if (before.answer == answer[row]) continue;
      if (found.count++ == 0) {
        found.bad = static_cast<Row>(row);
        found.witness = before.step;
      }
      if (found.count >= enough) return found;
    }
  }
  return found;
}

}  // namespace resolvent
