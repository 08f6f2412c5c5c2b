#include "q_learning.hpp"

#include <algorithm>
#include <cstddef>

namespace resolvent {

void QLearner::add(double potential) {
  potential_.push_back(potential);
  values_.resize(values_.size() + static_cast<std::size_t>(actions_), initial_);
}

void QLearner::put(Id state, std::span<const double> values) {
  std::copy(values.begin(), values.end(), values_.begin() + static_cast<std::ptrdiff_t>(state) * actions_);
}

Id QLearner::choose(Id state, double epsilon) {
  if (random_.unit() < epsilon) return random_.below(actions_);
  const double* values = row(state);
  const double highest = *std::max_element(values, values + actions_);
  const auto equals = static_cast<Id>(std::count(values, values + actions_, highest));
  Id skipped = equals > 1 ? random_.below(equals) : 0;
  Id action = 0;
  while (values[action] != highest || skipped-- > 0) ++action;
  return action;
}

void QLearner::update(Id state, Id action, double reward, Id next, bool ended) {
  const auto at = static_cast<std::size_t>(state);
  double target = reward - potential_[at];
  if (!ended) {
    const double* ahead = row(next);
    target += gamma_ * (potential_[static_cast<std::size_t>(next)] + *std::max_element(ahead, ahead + actions_));
  }
  double& value = values_[at * static_cast<std::size_t>(actions_) + static_cast<std::size_t>(action)];
  value += alpha_ * (target - value);
}

void learn_counterfactual(QLearner& learner, const KnownSteps& known, Id observation, Id action, Id real) {
  for (const Id state : known.among[static_cast<std::size_t>(observation)]) {
    if (state == real) continue;
    const auto at =
        static_cast<std::size_t>(state) * static_cast<std::size_t>(known.actions) + static_cast<std::size_t>(action);
    if (known.outcome[at] == Outcome::unknown) continue;
    const bool ends = known.outcome[at] == Outcome::ends;
    learner.update(state, action, known.reward[at], ends ? state : known.next_state[at], ends);
  }
}

}  // namespace resolvent
