// Tables of an environment + a stream of actions → episodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// A deterministic environment: `next_state[state * actions + action]` is the next state, `ends` whether that
// step ends the episode.
struct World {
  std::vector<Id> next_state;
  std::vector<std::uint8_t> ends;
  Id actions = 0;

  [[nodiscard]] std::size_t entry(Id state, Id action) const {
    return static_cast<std::size_t>(state) * static_cast<std::size_t>(actions) + static_cast<std::size_t>(action);
  }
};

// Consecutive episodes, each from its start until it ends or has `max_steps` steps (no limit if 0). Actions
// come in blocks of any size, since the number needed is not known before.
class Rollout {
 public:
  Rollout(World world, std::vector<Id> starts, Row max_steps)
      : world_(std::move(world)), starts_(std::move(starts)), max_steps_(max_steps), offsets_{0} {
    begin();
  }

  [[nodiscard]] std::size_t finished() const { return terminated_.size(); }
  [[nodiscard]] bool done() const { return finished() == starts_.size(); }
  [[nodiscard]] const World& world() const { return world_; }

  // Take actions until they are used up or all episodes are complete.
  void feed(std::span<const std::int64_t> actions);

  // The episodes: a state before each step and one after the last step of each; the actions; the first
  // action of each episode; whether it terminated.
  std::vector<Id>& states() { return states_; }
  std::vector<Id>& actions() { return actions_; }
  std::vector<Row>& offsets() { return offsets_; }
  std::vector<std::uint8_t>& terminated() { return terminated_; }

 private:
  void begin() {
    if (!done()) states_.push_back(starts_[finished()]);
  }

  World world_;
  std::vector<Id> starts_;
  Row max_steps_;
  std::vector<Id> states_;
  std::vector<Id> actions_;
  std::vector<Row> offsets_;
  std::vector<std::uint8_t> terminated_;
};

inline void Rollout::feed(std::span<const std::int64_t> actions) {
  for (const std::int64_t drawn : actions) {
    if (done()) return;
    const auto action = static_cast<Id>(drawn);
    const std::size_t at = world_.entry(states_.back(), action);
    actions_.push_back(action);
    states_.push_back(world_.next_state[at]);
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
