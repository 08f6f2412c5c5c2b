#include "tabular_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace resolvent {

std::size_t AugmentedStates::slot(std::span<const Id> tuple) const {
  std::uint64_t hash = 0;
  for (const Id code : tuple) {
    hash = (hash ^ static_cast<std::uint32_t>(code)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    if (slots_[at] == none) return at;
    const auto* tuple_at = codes_.data() + static_cast<std::size_t>(slots_[at]) * width_;
    if (std::equal(tuple.begin(), tuple.end(), tuple_at)) return at;
  }
}

Id AugmentedStates::number(std::span<const Id> tuple) {
  const std::size_t at = slot(tuple);
  if (slots_[at] != none) return slots_[at];
  const Id added = size();
  codes_.insert(codes_.end(), tuple.begin(), tuple.end());
  slots_[at] = added;
  if (static_cast<std::size_t>(size()) * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 2, none);
    for (Id each = 0; each < size(); ++each)
      slots_[slot({codes_.data() + static_cast<std::size_t>(each) * width_, width_})] = each;
  }
  return added;
}

void View::read(Id state) {
  const Id label = env_->label_of[static_cast<std::size_t>(state)];
  const auto follow = [&](const std::vector<Id>& table, Id& at) {
    const Id next = table[static_cast<std::size_t>(at) * static_cast<std::size_t>(machines_->labels) +
                          static_cast<std::size_t>(label)];
    if (next != none) at = next;
  };
  follow(machines_->transition, seen_[1]);
  follow(machines_->reward, seen_[2]);
}

void View::begin(Id state) {
  const Id observation = env_->observation_of[static_cast<std::size_t>(state)];
  if (machines_ == nullptr) {
    std::fill(seen_.begin(), seen_.end(), observation);
    return;
  }
  seen_ = {observation, 0, 0};
  if (machines_->reads_first && !machines_->lags) read(state);
}

void View::step(Id before, Id after) {
  const Id observation = env_->observation_of[static_cast<std::size_t>(after)];
  if (machines_ == nullptr) {
    std::shift_left(seen_.begin(), seen_.end(), 1);
    seen_.back() = observation;
    return;
  }
  seen_[0] = observation;
  read(machines_->lags ? before : after);
}

Id TabularTrainer::number_of(QLearner& learner) {
  const Id known = augmented_states_.size();
  const Id augmented_state = augmented_states_.number(view_.codes());
  if (augmented_state == known) {
    double potential = 0.0;
    if (!potential_.empty()) {
      const auto codes = view_.codes();
      potential = potential_[static_cast<std::size_t>(codes[1]) * static_cast<std::size_t>(machines_.reward_states) +
                             static_cast<std::size_t>(codes[2])];
    }
    learner.add(potential);
  }
  return augmented_state;
}

void TabularTrainer::begin(QLearner& learner, Id state) {
  state_ = state;
  view_.begin(state);
  augmented_state_ = number_of(learner);
  weight_ = 1.0;
  result_ = {};
}

void TabularTrainer::run(QLearner& learner, double epsilon, Row steps) {
  for (; steps > 0 && !result_.ended; --steps) {
    const Id action = learner.choose(augmented_state_, epsilon);
    const std::size_t at = env_.world.entry(state_, action);
    const double reward = env_.reward[at];
    const Id next = env_.world.next_state[at];
    result_.ended = env_.world.ends[at] != 0;
    view_.step(state_, next);
    // No action follows the end, so its augmented state is not needed.
    const Id arrived = result_.ended ? augmented_state_ : number_of(learner);
    learner.update(augmented_state_, action, reward, arrived, result_.ended);
    if (!known_observation_.empty()) {
      const Id of_env = env_.observation_of[static_cast<std::size_t>(state_)];
      const Id observation = known_observation_[static_cast<std::size_t>(of_env)];
      if (observation != none) learn_counterfactual(learner, known_, observation, action, augmented_state_);
    }
    result_.total += reward;
    result_.discounted += weight_ * reward;
    weight_ *= learner.gamma();
    ++result_.steps;
    state_ = next;
    augmented_state_ = arrived;
  }
}

namespace {

constexpr std::uint8_t in_progress = 2;  // while `ends` is not known to be 0 or 1

// Discounted value of repeating these steps forever, at the first of them.
double cycle_value(std::span<const double> rewards, double gamma) {
  double once = 0.0;
  double weight = 1.0;
  for (const double reward : rewards) {
    once += weight * reward;
    weight *= gamma;
  }
  if (once == 0.0) return 0.0;
  return weight == 1.0 ? std::copysign(std::numeric_limits<double>::infinity(), once) : once / (1.0 - weight);
}

}  // namespace

TabularTrainer::PolicyValue TabularTrainer::value_of(std::span<const Id> policy, double gamma,
                                                     std::span<const Id> starts) const {
  // A true state and its augmented state together determine everything that follows.
  AugmentedStates joints(augmented_states_.width() + 1);
  PolicyValue by_joint;
  PolicyValue by_start;
  std::vector<Id> joint(joints.width());
  std::vector<Id> path;  // joint states since the start, and the rewards of their steps
  std::vector<double> rewards;
  View view(view_);
  for (Id state : starts) {
    view.begin(state);
    path.clear();
    rewards.clear();
    double value = 0.0;
    std::uint8_t ends = 1;
    for (bool ended = false; !ended;) {
      joint[0] = state;
      std::copy(view.codes().begin(), view.codes().end(), joint.begin() + 1);
      const Id next_number = joints.size();
      const Id here = joints.number(joint);
      if (here != next_number) {
        const auto seen_before = static_cast<std::size_t>(here);
        ends = by_joint.ends[seen_before];
        value = by_joint.value[seen_before];
        if (ends == in_progress) {
          const auto first = std::find(path.begin(), path.end(), here) - path.begin();
          value = cycle_value(std::span(rewards).subspan(static_cast<std::size_t>(first)), gamma);
          ends = 0;
        }
        break;
      }
      by_joint.value.push_back(0.0);
      by_joint.ends.push_back(in_progress);
      const Id augmented_state = augmented_states_.find(view.codes());
      const Id action = augmented_state == none ? 0 : policy[static_cast<std::size_t>(augmented_state)];
      const std::size_t at = env_.world.entry(state, action);
      path.push_back(here);
      rewards.push_back(env_.reward[at]);
      ended = env_.world.ends[at] != 0;
      const Id next = env_.world.next_state[at];
      view.step(state, next);
      state = next;
    }
    for (std::size_t back = path.size(); back-- > 0;) {
      value = rewards[back] + gamma * value;
      by_joint.value[static_cast<std::size_t>(path[back])] = value;
      by_joint.ends[static_cast<std::size_t>(path[back])] = ends;
    }
    by_start.value.push_back(value);
    by_start.ends.push_back(ends);
  }
  return by_start;
}

}  // namespace resolvent
