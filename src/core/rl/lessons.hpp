// A world of tables + a learner → episodes that teach it, and what it has learned worth.
//
// The same steps, in the same order and by the same random numbers, as playing
// the episodes one step at a time from outside.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "q_learning.hpp"
#include "samples.hpp"
#include "walk.hpp"

namespace resolvent {

// Tuples of codes ↔ numbers 0, 1, 2, … in the order in which they were first met.
class Situations {
 public:
  explicit Situations(std::size_t width) : width_(width), slots_(64, none) {}

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] Id size() const { return static_cast<Id>(codes_.size() / width_); }
  [[nodiscard]] const std::vector<Id>& codes() const { return codes_; }

  // The tuple's number, or `none` when it was never met.
  [[nodiscard]] Id find(std::span<const Id> tuple) const { return slots_[slot(tuple)]; }

  // The tuple's number, a new one when it was never met.
  Id number(std::span<const Id> tuple);

 private:
  // Where the tuple is, or would be.
  [[nodiscard]] std::size_t slot(std::span<const Id> tuple) const;

  std::size_t width_;
  std::vector<Id> codes_;
  std::vector<Id> slots_;  // open addressing, a power of two
};

// What an agent gets to see of a world's true states, and what a step pays.
struct Scene {
  World world;
  std::vector<double> reward;  // by state and action
  std::vector<Id> observation_of;
  std::vector<Id> label_of;
};

// Two machines by state and label; `none` leaves a state as it is. Whether the
// first label is read, and whether labels are read a step late, is their timing.
struct Machines {
  std::vector<Id> transition;
  std::vector<Id> reward;
  Id labels = 0;
  Id reward_states = 0;
  bool reads_first = false;
  bool lags = false;
};

// The agent's eyes: either the observation and both machines' states, or the
// last observations, the first of an episode standing for those before it.
class View {
 public:
  View(const Scene& scene, const Machines* machines, std::size_t stack)
      : scene_(&scene), machines_(machines), seen_(machines == nullptr ? stack : 3) {}

  void begin(Id state);
  void step(Id before, Id after);
  [[nodiscard]] std::span<const Id> seen() const { return seen_; }

 private:
  void read(Id state);

  const Scene* scene_;
  const Machines* machines_;
  std::vector<Id> seen_;
};

struct Played {
  double total = 0.0;
  double discounted = 0.0;
  Row steps = 0;
  bool over = false;
};

// Episodes of one learner in one world. `known` and `known_observation` (the
// model's code of each of the world's) are for counterfactual experiences,
// `potential` goes by the states of the machines; each may be empty.
class Lessons {
 public:
  Lessons(Scene scene, Machines machines, std::size_t stack, KnownSteps known, std::vector<Id> known_observation,
          std::vector<double> potential)
      : scene_(std::move(scene)),
        machines_(std::move(machines)),
        known_(std::move(known)),
        known_observation_(std::move(known_observation)),
        potential_(std::move(potential)),
        view_(scene_, stack == 0 ? &machines_ : nullptr, stack),
        situations_(view_.seen().size()) {}
  Lessons(const Lessons&) = delete;

  [[nodiscard]] const Scene& scene() const { return scene_; }
  [[nodiscard]] const Situations& situations() const { return situations_; }
  [[nodiscard]] const Played& played() const { return played_; }

  // Number a situation before any is met. The learner must have it already.
  void expect(std::span<const Id> tuple) { situations_.number(tuple); }

  // Begin an episode in a true state; `run` it for some steps, or until it is over.
  void begin(QLearner& learner, Id state);
  void run(QLearner& learner, double epsilon, Row steps);

  // What doing one action in each situation (and the first in any other) is worth
  // from each start, and whether that way ends. One that comes back to where it
  // was goes round for ever, and is worth what a geometric series says.
  struct Worth {
    std::vector<double> value;
    std::vector<std::uint8_t> ends;
  };
  [[nodiscard]] Worth worth(std::span<const Id> policy, double gamma, std::span<const Id> starts) const;

 private:
  Id met(QLearner& learner);

  Scene scene_;
  Machines machines_;
  KnownSteps known_;
  std::vector<Id> known_observation_;
  std::vector<double> potential_;
  View view_;
  Situations situations_;
  Id state_ = 0;
  Id situation_ = 0;
  double weight_ = 1.0;
  Played played_{.over = true};
};

}  // namespace resolvent
