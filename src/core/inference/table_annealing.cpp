#include "table_annealing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "arithmetic.hpp"

namespace resolvent {
namespace {

constexpr double thousandths = 1000.0;

// Allowed disagreement beyond the limit during a change, in temperatures. Two makes a change five times as
// cheap and is rarely wrong (docs/decisions/inference.md).
constexpr double slack = 2.0;

// Allowed increase at temperature 1: minus the logarithm of a random number, from a table, so that rounding
// is the same on all machines.
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

// Sets the temperature, for a few moves at a time.
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

inline void TableAnnealing::add_outputs(Id node) {
  const Id state = state_of_[index(node)];
  Id* const alphas = alpha_count_.data() + index(state) * index(tree_.alphas);
  Id* const outputs = output_count_.data() + index(state) * index(tree_.outputs);
  const auto end = tree_.nodes[index(node) + 1].first_seen;
  for (auto at = tree_.nodes[index(node)].first_seen; at < end; ++at) {
    const auto [alpha, output] = tree_.seen[at];
    Id& all = alphas[alpha];
    Id& same = outputs[output];
    disagreement_ += weight_[index(all)] - weight_[index(same)];
    if (same == 0) information_ += information_of_[index(output)];
    ++all;
    ++same;
  }
}

inline void TableAnnealing::remove_outputs(Id node) {
  const Id state = state_of_[index(node)];
  Id* const alphas = alpha_count_.data() + index(state) * index(tree_.alphas);
  Id* const outputs = output_count_.data() + index(state) * index(tree_.outputs);
  const auto end = tree_.nodes[index(node) + 1].first_seen;
  for (auto at = tree_.nodes[index(node)].first_seen; at < end; ++at) {
    const auto [alpha, output] = tree_.seen[at];
    Id& all = alphas[alpha];
    Id& same = outputs[output];
    --all;
    --same;
    if (same == 0) information_ -= information_of_[index(output)];
    disagreement_ -= weight_[index(all)] - weight_[index(same)];
  }
}

TableAnnealing::TableAnnealing(const ConflictTree& tree, Id states, Id labels)
    : tree_(tree),
      states_(states),
      labels_(labels),
      information_of_(index(tree.outputs), 0),
      moved_at_(tree.size(), 0) {
  std::vector<Id> counts(index(tree.alphas), 0);
  std::vector<Id> equal(index(tree.outputs), 0);
  for (const auto [alpha, output] : tree.seen) {
    ++counts[index(alpha)];
    ++equal[index(output)];
  }
  // The weight of n outputs of which n_i are equal is n log n - sum of n_i log n_i.
  const Id most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  const auto weight = [](Id n) { return n == 0 ? 0 : std::llround(thousandths * n * natural_log(n)); };
  for (Id n = 0; n < most; ++n) weight_.push_back(weight(n + 1) - weight(n));
  for (const auto [alpha, output] : tree.seen)
    information_of_[index(output)] =
        std::llround(thousandths * natural_log(static_cast<double>(counts[index(alpha)]) / equal[index(output)]));
}

void TableAnnealing::start(Random& random) {
  Targets table(index(states_) * index(labels_));
  for (Id& target : table) target = random.below(states_);
  start(std::move(table));
}

void TableAnnealing::start(Targets table) {
  table_ = std::move(table);
  state_of_.assign(tree_.size(), 0);
  alpha_count_.assign(index(states_) * index(tree_.alphas), 0);
  output_count_.assign(index(states_) * index(tree_.outputs), 0);
  disagreement_ = 0;
  information_ = 0;
  for (std::size_t at = 0; at < tree_.size(); ++at) {
    const auto node = static_cast<Id>(at);
    add_outputs(node);
    for (auto next = tree_.nodes[at].first_child; next < tree_.nodes[at + 1].first_child; ++next) {
      const Id child = tree_.children[next];
      state_of_[index(child)] = table_[index(state_of_[at] * labels_ + tree_.nodes[index(child)].label)];
    }
  }
  visits_ += static_cast<std::int64_t>(tree_.size());
}

std::int64_t TableAnnealing::anneal(std::int64_t moves, Cooling cooling, Random& random, Watch& watch) {
  static const Tolerance tolerance;
  Thermostat thermostat(moves, cooling);
  for (std::int64_t move = 0; move < moves; ++move) {
    if (disagreement_ == 0) return move;
    tick(watch);
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

// Once per change, and more often if that was much work.
void TableAnnealing::tick(Watch& watch) {
  constexpr std::int64_t visits_per_tick = 256;
  do watch.tick();
  while ((visits_reported_ += visits_per_tick) < visits_);
  visits_reported_ = std::min(visits_reported_, visits_);
}

double TableAnnealing::agreement() const {
  Disagreement all = 0;
  for (const ConflictTree::Output& seen : tree_.seen) all += information_of_[index(seen.output)];
  return static_cast<double>(all - information_) / thousandths;
}

void TableAnnealing::settle(Watch& watch) {
  for (bool better = true; better;) {
    better = false;
    for (Id state = 0; state < states_; ++state)
      for (Id label = 0; label < labels_; ++label)
        for (Id target = 0; target < states_; ++target) {
          tick(watch);
          const Id before = table_[index(state * labels_ + label)];
          const auto information = information_;
          if (target == before || !try_change(state, label, target, 0, 0)) continue;
          if (information_ < information || (information_ == information && target < before))
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
    // The nodes below a moved node were moved with it.
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
  remove_outputs(node);
  state_of_[index(node)] = to;
  add_outputs(node);
}

// Undo the last change.
void TableAnnealing::take_back(Id state, Id label, Id target) {
  table_[index(state * labels_ + label)] = target;
  for (const auto [node, before] : moved_) {
    remove_outputs(node);
    state_of_[index(node)] = before;
    add_outputs(node);
  }
}

}  // namespace resolvent
