#include "state_walk.hpp"

#include <cstddef>

namespace resolvent {

void walk_states(std::span<const Id> transitions, Id labels, std::span<const Id> beta,
            std::span<const Row> offsets, std::span<Id> states) {
  for (std::size_t trace = 0; trace + 1 < offsets.size(); ++trace) {
    Id state = 0;
    const auto end = static_cast<std::size_t>(offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(offsets[trace]); row < end; ++row) {
      const Id label = beta[row];
      if (label != none && state != none)
        state = label < labels ? transitions[static_cast<std::size_t>(state) * static_cast<std::size_t>(labels) +
                                             static_cast<std::size_t>(label)]
                               : none;
      states[row] = state;
    }
  }
}

}  // namespace resolvent
