#include "table_annealing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "elementary.hpp"

namespace resolvent {
namespace {

constexpr double thousandths = 1000.0;

// How far beyond what is acceptable a change may go on its way, in temperatures.
// Two make a change five times as cheap and are seldom wrong
// (docs/decisions/inference.md).
constexpr double slack = 2.0;

// How much worse a change may be, at temperature 1: minus the logarithm of a
// random number, from a table so that all machines round it alike.
class Tolerance {
 public:
  Tolerance() {
    for (std::size_t at = 0; at < size; ++at)
      values_[at] = -natural_log((static_cast<double>(at) + 0.5) / static_cast<double>(size));
  }

  [[nodiscard]] double draw(Random& random) const { return values_[random.next() >> (64 - bits)]; }

 private:
  static constexpr unsigned bits = 12;
  static constexpr std::size_t size = std::size_t{1} << bits;
  std::array<double, size> values_{};
};

// Sets the temperature, a few moves at a time.
class Thermostat {
 public:
  Thermostat(std::int64_t moves, Cooling cooling)
      : cooling_(cooling),
        moves_at_once_(std::clamp<std::int64_t>(moves / 512, 32, 512)),
        until_frozen_(static_cast<double>(moves) * (1 - frozen_part)),
        temperature_(cooling.hot) {}

  double temperature(std::int64_t move) {
    if (move % moves_at_once_ != 0) return temperature_;
    const double time = static_cast<double>(move) / until_frozen_;
    if (time >= 1)
      temperature_ = 0;
    else if (cooling_.cold)
      temperature_ = cooling_.hot * power(*cooling_.cold / cooling_.hot, time);
    else if (share_kept_ > first_share * power(last_share / first_share, time))
      temperature_ *= 0.97;
    return temperature_;
  }

  void note(bool kept) { share_kept_ += (static_cast<double>(kept) - share_kept_) / averaged_over; }

 private:
  static constexpr double frozen_part = 0.1;
  static constexpr double first_share = 0.12;
  static constexpr double last_share = 0.02;
  static constexpr double averaged_over = 512;

  Cooling cooling_;
  std::int64_t moves_at_once_;
  double until_frozen_;
  double temperature_;
  double share_kept_ = 1;
};

}  // namespace

inline void TableAnnealing::gain_answers(Id node) {
  const Id state = state_of_[index(node)];
  Id* const alphas = answered_.data() + index(state) * index(tree_.alphas);
  Id* const outputs = answered_as_.data() + index(state) * index(tree_.outputs);
  const auto end = tree_.nodes[index(node) + 1].first_answer;
  for (auto at = tree_.nodes[index(node)].first_answer; at < end; ++at) {
    const auto [alpha, output] = tree_.answers[at];
    Id& all = alphas[alpha];
    Id& same = outputs[output];
    disagreement_ += weight_[index(all)] - weight_[index(same)];
    if (same == 0) surprise_ += surprise_of_[index(output)];
    ++all;
    ++same;
  }
}

inline void TableAnnealing::lose_answers(Id node) {
  const Id state = state_of_[index(node)];
  Id* const alphas = answered_.data() + index(state) * index(tree_.alphas);
  Id* const outputs = answered_as_.data() + index(state) * index(tree_.outputs);
  const auto end = tree_.nodes[index(node) + 1].first_answer;
  for (auto at = tree_.nodes[index(node)].first_answer; at < end; ++at) {
    const auto [alpha, output] = tree_.answers[at];
    Id& all = alphas[alpha];
    Id& same = outputs[output];
    --all;
    --same;
    if (same == 0) surprise_ -= surprise_of_[index(output)];
    disagreement_ -= weight_[index(all)] - weight_[index(same)];
  }
}

TableAnnealing::TableAnnealing(const ClashTree& tree, Id states, Id labels)
    : tree_(tree),
      states_(states),
      labels_(labels),
      surprise_of_(index(tree.outputs), 0),
      moved_at_(tree.size(), 0) {
  std::vector<Id> answers(index(tree.alphas), 0);
  std::vector<Id> equal(index(tree.outputs), 0);
  for (const auto [alpha, output] : tree.answers) {
    ++answers[index(alpha)];
    ++equal[index(output)];
  }
  // n answers of which n_i are equal weigh n log n - sum of n_i log n_i.
  const Id most = answers.empty() ? 0 : *std::ranges::max_element(answers);
  const auto weight = [](Id n) { return n == 0 ? 0 : std::llround(thousandths * n * natural_log(n)); };
  for (Id n = 0; n < most; ++n) weight_.push_back(weight(n + 1) - weight(n));
  for (const auto [alpha, output] : tree.answers)
    surprise_of_[index(output)] =
        std::llround(thousandths * natural_log(static_cast<double>(answers[index(alpha)]) / equal[index(output)]));
}

void TableAnnealing::start(Random& random) {
  Targets table(index(states_) * index(labels_));
  for (Id& target : table) target = random.below(states_);
  start(std::move(table));
}

void TableAnnealing::start(Targets table) {
  table_ = std::move(table);
  state_of_.assign(tree_.size(), 0);
  answered_.assign(index(states_) * index(tree_.alphas), 0);
  answered_as_.assign(index(states_) * index(tree_.outputs), 0);
  disagreement_ = 0;
  surprise_ = 0;
  for (std::size_t at = 0; at < tree_.size(); ++at) {
    const auto node = static_cast<Id>(at);
    gain_answers(node);
    for (auto next = tree_.nodes[at].first_child; next < tree_.nodes[at + 1].first_child; ++next) {
      const Id child = tree_.children[next];
      state_of_[index(child)] = table_[index(state_of_[at] * labels_ + tree_.nodes[index(child)].label)];
    }
  }
  visits_ += static_cast<std::int64_t>(tree_.size());
}

std::int64_t TableAnnealing::anneal(std::int64_t moves, Cooling cooling, Random& random, Pulse& pulse) {
  static const Tolerance tolerance;
  Thermostat thermostat(moves, cooling);
  for (std::int64_t move = 0; move < moves; ++move) {
    if (disagreement_ == 0) return move;
    beat(pulse);
    const double temperature = thousandths * thermostat.temperature(move);
    const Id state = random.below(states_);
    const Id label = random.below(labels_);
    Id target = random.below(states_ - 1);
    if (target >= table_[index(state * labels_ + label)]) ++target;
    const auto limit = disagreement_ + static_cast<Disagreement>(temperature * tolerance.draw(random));
    thermostat.note(try_change(state, label, target, limit, static_cast<Disagreement>(temperature * slack)));
  }
  return moves;
}

// Once for the last change, and more often if that was much work.
void TableAnnealing::beat(Pulse& pulse) {
  constexpr std::int64_t visits_per_beat = 256;
  do pulse.beat();
  while ((visits_told_ += visits_per_beat) < visits_);
  visits_told_ = std::min(visits_told_, visits_);
}

double TableAnnealing::agreement() const {
  Disagreement all = 0;
  for (const ClashTree::Answer& answer : tree_.answers) all += surprise_of_[index(answer.output)];
  return static_cast<double>(all - surprise_) / thousandths;
}

void TableAnnealing::settle(Pulse& pulse) {
  for (bool better = true; better;) {
    better = false;
    for (Id state = 0; state < states_; ++state)
      for (Id label = 0; label < labels_; ++label)
        for (Id target = 0; target < states_; ++target) {
          beat(pulse);
          const Id before = table_[index(state * labels_ + label)];
          const auto surprise = surprise_;
          if (target == before || !try_change(state, label, target, 0, 0)) continue;
          if (surprise_ < surprise || (surprise_ == surprise && target < before))
            better = true;
          else
            take_back(state, label, before);
        }
  }
}

bool TableAnnealing::try_change(Id state, Id label, Id target, Disagreement limit, Disagreement within) {
  Id& entry = table_[index(state * labels_ + label)];
  const Id before = entry;
  entry = target;
  ++changes_;
  moved_.clear();
  const auto& edges = tree_.edges[index(label)];
  visits_ += static_cast<std::int64_t>(edges.size());
  for (const auto [parent, child] : edges) {
    // Below a node that has moved, all that follows has been dealt with.
    if (state_of_[index(parent)] != state || moved_at_[index(parent)] == changes_) continue;
    std::size_t next = moved_.size();
    move_node(child, target);
    for (; next < moved_.size(); ++next) {
      const auto node = index(moved_[next].node);
      const Id* row = &table_[index(state_of_[node] * labels_)];
      for (auto at = tree_.nodes[node].first_child; at < tree_.nodes[node + 1].first_child; ++at) {
        const Id below = tree_.children[at];
        const Id to = row[tree_.nodes[index(below)].label];
        if (to != state_of_[index(below)]) move_node(below, to);
      }
    }
    if (disagreement_ > limit + within) break;
  }
  visits_ += static_cast<std::int64_t>(moved_.size());
  if (disagreement_ <= limit) return true;
  take_back(state, label, before);
  return false;
}

void TableAnnealing::move_node(Id node, Id to) {
  moved_.push_back({node, state_of_[index(node)]});
  moved_at_[index(node)] = changes_;
  lose_answers(node);
  state_of_[index(node)] = to;
  gain_answers(node);
}

// Undoes the last change.
void TableAnnealing::take_back(Id state, Id label, Id target) {
  table_[index(state * labels_ + label)] = target;
  for (const auto [node, before] : moved_) {
    lose_answers(node);
    state_of_[index(node)] = before;
    gain_answers(node);
  }
}

}  // namespace resolvent
