#include "walk.hpp"

namespace resolvent {

void Walk::feed(std::span<const std::int64_t> actions) {
  for (const std::int64_t drawn : actions) {
    if (done()) return;
    const auto action = static_cast<Id>(drawn);
    const std::size_t at = world_.entry(states_.back(), action);
    actions_.push_back(action);
    states_.push_back(world_.following[at]);
    const bool ended = world_.ends[at] != 0;
    const Row steps = static_cast<Row>(actions_.size()) - offsets_.back();
    if (ended || steps == max_steps_) {
      terminated_.push_back(ended ? 1 : 0);
      offsets_.push_back(static_cast<Row>(actions_.size()));
      begin();
    }
  }
}

}  // namespace resolvent
