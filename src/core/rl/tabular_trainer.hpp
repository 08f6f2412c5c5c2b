// A tabular environment + a learner → training episodes, and the value of the learned policy.
//
// The steps, their order and the random numbers are the same as for single steps from Python.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "q_learning.hpp"
#include "rollout.hpp"
#include "samples.hpp"

namespace resolvent {

// Tuples of codes ↔ consecutive numbers in order of first occurrence.
class AugmentedStates {
 public:
  explicit AugmentedStates(std::size_t width) : width_(width), slots_(64, none) {}

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] Id size() const { return static_cast<Id>(codes_.size() / width_); }
  [[nodiscard]] const std::vector<Id>& codes() const { return codes_; }

  // Return the number of a tuple, or `none` if it is new.
  [[nodiscard]] Id find(std::span<const Id> tuple) const { return slots_[slot(tuple)]; }

  // Return the number of a tuple, a new one if it is new.
  Id number(std::span<const Id> tuple);

 private:
  // The slot of a tuple, or where it would be.
  [[nodiscard]] std::size_t slot(std::span<const Id> tuple) const;

  std::size_t width_;
  std::vector<Id> codes_;
  std::vector<Id> slots_;  // open addressing, a power of two
};

// A deterministic environment with observations, labels and rewards.
struct TabularEnv {
  World world;
  std::vector<double> reward;  // by state and action
  std::vector<Id> observation_of;
  std::vector<Id> label_of;
};

// Two machines by state and label; `none` is a loop. `reads_first` and `lags` are their label timing.
struct Machines {
  std::vector<Id> transition;
  std::vector<Id> reward;
  Id labels = 0;
  Id reward_states = 0;
  bool reads_first = false;
  bool lags = false;
};

// The learner's view of the environment: the observation and both machines' states, or the last
// observations, padded with the first one of the episode.
class View {
 public:
  View(const TabularEnv& env, const Machines* machines, std::size_t stack)
      : env_(&env), machines_(machines), seen_(machines == nullptr ? stack : 3) {}

  void begin(Id state);
  void step(Id before, Id after);
  [[nodiscard]] std::span<const Id> codes() const { return seen_; }

 private:
  void read(Id state);

  const TabularEnv* env_;
  const Machines* machines_;
  std::vector<Id> seen_;
};

struct EpisodeResult {
  double total = 0.0;
  double discounted = 0.0;
  Row steps = 0;
  bool ended = false;
};

// Episodes of one learner in one environment. `known` and `known_observation` (the model's code of each
// observation) are for counterfactual experiences, `potential` is by the states of the machines; each may
// be empty.
class TabularTrainer {
 public:
  TabularTrainer(TabularEnv env, Machines machines, std::size_t stack, KnownSteps known,
                 std::vector<Id> known_observation, std::vector<double> potential)
      : env_(std::move(env)),
        machines_(std::move(machines)),
        known_(std::move(known)),
        known_observation_(std::move(known_observation)),
        potential_(std::move(potential)),
        view_(env_, stack == 0 ? &machines_ : nullptr, stack),
        augmented_states_(view_.codes().size()) {}
  TabularTrainer(const TabularTrainer&) = delete;

  [[nodiscard]] const TabularEnv& env() const { return env_; }
  [[nodiscard]] const AugmentedStates& augmented_states() const { return augmented_states_; }
  [[nodiscard]] const EpisodeResult& result() const { return result_; }

  // Number an augmented state before it occurs. The learner must have it already.
  void expect(std::span<const Id> tuple) { augmented_states_.number(tuple); }

  // Begin an episode in a true state; `run` it for some steps, or until it ends.
  void begin(QLearner& learner, Id state);
  void run(QLearner& learner, double epsilon, Row steps);

  // The value of a policy from each start, and whether its episode ends. Unknown augmented states use the
  // first action. A cycle has the value of its geometric series.
  struct PolicyValue {
    std::vector<double> value;
    std::vector<std::uint8_t> ends;
  };
  [[nodiscard]] PolicyValue value_of(std::span<const Id> policy, double gamma, std::span<const Id> starts) const;

 private:
  Id number_of(QLearner& learner);

  TabularEnv env_;
  Machines machines_;
  KnownSteps known_;
  std::vector<Id> known_observation_;
  std::vector<double> potential_;
  View view_;
  AugmentedStates augmented_states_;
  Id state_ = 0;
  Id augmented_state_ = 0;
  double weight_ = 1.0;
  EpisodeResult result_{.ended = true};
};

}  // namespace resolvent
