#include "lessons.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace resolvent {

std::size_t Situations::slot(std::span<const Id> tuple) const {
  std::uint64_t hash = 0;
  for (const Id code : tuple) {
    hash = (hash ^ static_cast<std::uint32_t>(code)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  }
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    if (slots_[at] == none) return at;
    const auto* held = codes_.data() + static_cast<std::size_t>(slots_[at]) * width_;
    if (std::equal(tuple.begin(), tuple.end(), held)) return at;
  }
}

Id Situations::number(std::span<const Id> tuple) {
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
  const Id label = scene_->label_of[static_cast<std::size_t>(state)];
  const auto follow = [&](const std::vector<Id>& table, Id& at) {
    const Id next = table[static_cast<std::size_t>(at) * static_cast<std::size_t>(machines_->labels) +
                          static_cast<std::size_t>(label)];
    if (next != none) at = next;
  };
  follow(machines_->transition, seen_[1]);
  follow(machines_->reward, seen_[2]);
}

void View::begin(Id state) {
  const Id observation = scene_->observation_of[static_cast<std::size_t>(state)];
  if (machines_ == nullptr) {
    std::fill(seen_.begin(), seen_.end(), observation);
    return;
  }
  seen_ = {observation, 0, 0};
  if (machines_->reads_first && !machines_->lags) read(state);
}

void View::step(Id before, Id after) {
  const Id observation = scene_->observation_of[static_cast<std::size_t>(after)];
  if (machines_ == nullptr) {
    std::shift_left(seen_.begin(), seen_.end(), 1);
    seen_.back() = observation;
    return;
  }
  seen_[0] = observation;
  read(machines_->lags ? before : after);
}

Id Lessons::met(QLearner& learner) {
  const Id known = situations_.size();
  const Id situation = situations_.number(view_.seen());
  if (situation == known) {
    double potential = 0.0;
    if (!potential_.empty()) {
      const auto seen = view_.seen();
      potential = potential_[static_cast<std::size_t>(seen[1]) * static_cast<std::size_t>(machines_.reward_states) +
                             static_cast<std::size_t>(seen[2])];
    }
    learner.add(potential);
  }
  return situation;
}

void Lessons::begin(QLearner& learner, Id state) {
  state_ = state;
  view_.begin(state);
  situation_ = met(learner);
  weight_ = 1.0;
  played_ = {};
}

void Lessons::run(QLearner& learner, double epsilon, Row steps) {
  for (; steps > 0 && !played_.over; --steps) {
    const Id action = learner.choose(situation_, epsilon);
    const std::size_t at = scene_.world.entry(state_, action);
    const double reward = scene_.reward[at];
    const Id next = scene_.world.following[at];
    played_.over = scene_.world.ends[at] != 0;
    view_.step(state_, next);
    // What is seen when all is over is nothing to act on.
    const Id arrived = played_.over ? situation_ : met(learner);
    learner.update(situation_, action, reward, arrived, played_.over);
    if (!known_observation_.empty()) {
      const Id shown = scene_.observation_of[static_cast<std::size_t>(state_)];
      const Id observation = known_observation_[static_cast<std::size_t>(shown)];
      if (observation != none) imagine(learner, known_, observation, action, situation_);
    }
    played_.total += reward;
    played_.discounted += weight_ * reward;
    weight_ *= learner.gamma();
    ++played_.steps;
    state_ = next;
    situation_ = arrived;
  }
}

namespace {

constexpr std::uint8_t on_the_way = 2;  // where `ends` will say 0 or 1

// What going round for ever is worth, at the first of these steps.
double round_and_round(std::span<const double> rewards, double gamma) {
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

Lessons::Worth Lessons::worth(std::span<const Id> policy, double gamma, std::span<const Id> starts) const {
  // A place is a true state and what is seen there; which decide all that follows.
  Situations places(situations_.width() + 1);
  Worth by_place;
  Worth by_start;
  std::vector<Id> place(places.width());
  std::vector<Id> way;  // the places passed since the start, and what their steps paid
  std::vector<double> paid;
  View view(view_);
  for (Id state : starts) {
    view.begin(state);
    way.clear();
    paid.clear();
    double value = 0.0;
    std::uint8_t ends = 1;
    for (bool over = false; !over;) {
      place[0] = state;
      std::copy(view.seen().begin(), view.seen().end(), place.begin() + 1);
      const Id fresh = places.size();
      const Id here = places.number(place);
      if (here != fresh) {
        const auto met_before = static_cast<std::size_t>(here);
        ends = by_place.ends[met_before];
        value = by_place.value[met_before];
        if (ends == on_the_way) {
          const auto first = std::find(way.begin(), way.end(), here) - way.begin();
          value = round_and_round(std::span(paid).subspan(static_cast<std::size_t>(first)), gamma);
          ends = 0;
        }
        break;
      }
      by_place.value.push_back(0.0);
      by_place.ends.push_back(on_the_way);
      const Id situation = situations_.find(view.seen());
      const Id action = situation == none ? 0 : policy[static_cast<std::size_t>(situation)];
      const std::size_t at = scene_.world.entry(state, action);
      way.push_back(here);
      paid.push_back(scene_.reward[at]);
      over = scene_.world.ends[at] != 0;
      const Id next = scene_.world.following[at];
      view.step(state, next);
      state = next;
    }
    for (std::size_t back = way.size(); back-- > 0;) {
      value = paid[back] + gamma * value;
      by_place.value[static_cast<std::size_t>(way[back])] = value;
      by_place.ends[static_cast<std::size_t>(way[back])] = ends;
    }
    by_start.value.push_back(value);
    by_start.ends.push_back(ends);
  }
  return by_start;
}

}  // namespace resolvent
