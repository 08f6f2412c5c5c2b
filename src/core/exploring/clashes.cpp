#include "clashes.hpp"

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace resolvent {
namespace {

// The first step with each key: a table over all keys where they are few, else those that occur.
class FirstSteps {
 public:
  explicit FirstSteps(std::size_t keys) : dense_(keys <= most_dense) {
    if (dense_) table_.assign(keys, none);
  }

  // The first step with this key, which is `step` if none was before.
  Id first(std::size_t key, Id step) {
    if (!dense_) return map_.try_emplace(key, step).first->second;
    Id& known = table_[key];
    if (known == none) known = step;
    return known;
  }

 private:
  static constexpr std::size_t most_dense = std::size_t{1} << 22;
  bool dense_;
  std::vector<Id> table_;
  std::unordered_map<std::size_t, Id> map_;
};

}  // namespace

Clashes find_clashes(std::span<const Id> transitions, Id labels, const AskedSteps& steps, const Beside& beside,
                     bool any) {
  const auto width = static_cast<std::size_t>(labels);
  const std::size_t states = width == 0 ? 1 : transitions.size() / width;
  FirstSteps first(states * beside.states * steps.questions);
  Clashes found;
  for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
    Id state = 0;
    const auto end = static_cast<std::size_t>(steps.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(steps.offsets[trace]); row < end; ++row) {
      const Id label = steps.read[row];
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
      key = key * steps.questions + static_cast<std::size_t>(steps.question[row]);
      const Id before = first.first(key, static_cast<Id>(row));
      if (steps.answer[static_cast<std::size_t>(before)] == steps.answer[row]) continue;
      if (found.count++ == 0) {
        found.bad = static_cast<Row>(row);
        found.witness = before;
      }
      if (any) return found;
    }
  }
  return found;
}

}  // namespace resolvent
