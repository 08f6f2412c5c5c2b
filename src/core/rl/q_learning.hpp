// Tabular Q-learning with a table that grows with new augmented states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "random.hpp"
#include "samples.hpp"

namespace resolvent {

// States, and actions, are numbered in the order in which they were added.
class QLearner {
 public:
  QLearner(Id actions, double alpha, double gamma, std::uint64_t seed, double initial)
      : actions_(actions), alpha_(alpha), gamma_(gamma), initial_(initial), random_(seed) {}

  [[nodiscard]] Id actions() const { return actions_; }
  [[nodiscard]] double gamma() const { return gamma_; }
  [[nodiscard]] Id states() const { return static_cast<Id>(potential_.size()); }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  // Add a state, with the initial value for each action. Reward is shaped by γ·potential(next) −
  // potential(state), which preserves optimal policies (Ng, Harada and Russell 1999).
  void add(double potential);

  // Set the values of all actions of a state, transferred from elsewhere.
  void put(Id state, std::span<const double> values);

  // Return a random action with probability ε, else a best one, with random ties.
  Id choose(Id state, double epsilon);

  // One Q-learning update; the value after the end of an episode is 0.
  void update(Id state, Id action, double reward, Id next, bool ended);

 private:
  [[nodiscard]] const double* row(Id state) const {
    return values_.data() + static_cast<std::size_t>(state) * static_cast<std::size_t>(actions_);
  }

  Id actions_;
  double alpha_;
  double gamma_;
  double initial_;
  Random random_;
  std::vector<double> values_;
  std::vector<double> potential_;
};

enum class Outcome : std::uint8_t { unknown, goes_on, ends };

// The known steps of a model by state and action. Its states are the first ones of the learner. `among`
// lists the states with each observation.
struct KnownSteps {
  Id actions = 0;
  std::vector<Id> next_state;
  std::vector<double> reward;
  std::vector<Outcome> outcome;
  std::vector<std::vector<Id>> among;

  [[nodiscard]] Id states() const { return static_cast<Id>(next_state.size()) / actions; }
};

// Update with the known outcome of the action under this observation in all other states of the machines,
// called counterfactual experiences by Toro Icarte, Klassen, Valenzano and McIlraith (2022). `real` is the
// actual state.
void learn_counterfactual(QLearner& learner, const KnownSteps& known, Id observation, Id action, Id real);

}  // namespace resolvent
