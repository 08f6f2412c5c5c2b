// Tabular Q-learning: steps in, a table of values that grows as situations are met out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "random.hpp"
#include "samples.hpp"

namespace resolvent {

// Situations are 0, 1, 2, … in the order in which they were added, and so are actions.
class QLearner {
 public:
  QLearner(Id actions, double alpha, double gamma, std::uint64_t seed, double initial)
      : actions_(actions), alpha_(alpha), gamma_(gamma), initial_(initial), random_(seed) {}

  [[nodiscard]] Id actions() const { return actions_; }
  [[nodiscard]] double gamma() const { return gamma_; }
  [[nodiscard]] Id situations() const { return static_cast<Id>(potential_.size()); }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

  // A new situation, with the initial value for each action. Steps are paid γ·potential(next) −
  // potential(situation) on top of their reward, which changes what is learned
  // first but not what is best in the end (Ng, Harada and Russell 1999).
  void add(double potential);

  // Take what was learned elsewhere for the values of all actions in a situation.
  void put(Id situation, std::span<const double> values);

  // Any action with probability ε, else one of the best; which of them, chance decides.
  Id choose(Id situation, double epsilon);

  // One step of Q-learning; what comes after a step that ended the episode is worth nothing.
  void update(Id situation, Id action, double reward, Id next, bool ended);

 private:
  [[nodiscard]] const double* row(Id situation) const {
    return values_.data() + static_cast<std::size_t>(situation) * static_cast<std::size_t>(actions_);
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

// What a model knows of its situations, which are the learner's first ones; by
// situation and action. `among` lists the situations that show each observation.
struct KnownSteps {
  Id actions = 0;
  std::vector<Id> following;
  std::vector<double> reward;
  std::vector<Outcome> outcome;
  std::vector<std::vector<Id>> among;

  [[nodiscard]] Id situations() const { return static_cast<Id>(following.size()) / actions; }
};

// Teach what the action would have done under this observation in any other
// state of the machines. Toro Icarte, Klassen, Valenzano and McIlraith (2022)
// call these counterfactual experiences. `real` is the situation it was done in.
void imagine(QLearner& learner, const KnownSteps& known, Id observation, Id action, Id real);

}  // namespace resolvent
