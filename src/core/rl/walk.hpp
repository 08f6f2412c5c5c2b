// A world's tables + a stream of actions → the episodes they make.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// A deterministic world over its true states: `following[state * actions + action]`
// is the next state, `ends` says whether that step ends the episode.
struct World {
  std::vector<Id> following;
  std::vector<std::uint8_t> ends;
  Id actions = 0;

  [[nodiscard]] std::size_t entry(Id state, Id action) const {
    return static_cast<std::size_t>(state) * static_cast<std::size_t>(actions) + static_cast<std::size_t>(action);
  }
};

// Episodes one after another, each from its start until it ends or has taken
// `max_steps` (no limit when 0). Actions come in blocks of any size, since
// nobody knows beforehand how many it takes.
class Walk {
 public:
  Walk(World world, std::vector<Id> starts, Row max_steps)
      : world_(std::move(world)), starts_(std::move(starts)), max_steps_(max_steps), offsets_{0} {
    begin();
  }

  [[nodiscard]] std::size_t finished() const { return terminated_.size(); }
  [[nodiscard]] bool done() const { return finished() == starts_.size(); }
  [[nodiscard]] const World& world() const { return world_; }

  // Take actions until they are used up or all episodes are over.
  void feed(std::span<const std::int64_t> actions);

  // All that was walked: a state before each step and one after the last of an
  // episode; the actions; where each episode's actions begin; whether it ended.
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

}  // namespace resolvent
