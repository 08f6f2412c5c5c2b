#include "repair.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "clash_tree.hpp"
#include "random.hpp"
#include "replayed_table.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

using Disagreement = ReplayedTable::Disagreement;
constexpr Disagreement any_disagreement = std::numeric_limits<Disagreement>::max() / 2;

// How much may disagree, in thousandths of a nat, when one state is taken for another.
constexpr Disagreement most_to_mend = 60'000;

constexpr std::size_t thinnest = 6;
constexpr int steps_in_vain = 24;
constexpr int tenure = 12;
constexpr Disagreement slack = 8'000;

class Repair {
 public:
  Repair(const ClashTree& whole, Targets table, Id labels, const RepairOptions& options, Pulse& pulse)
      : replayed_(whole, std::move(table), labels),
        random_(options.seed),
        budget_(options.budget),
        pulse_(pulse),
        tabu_until_(replayed_.targets().size(), 0),
        best(replayed_.targets()) {}

  void run() {
    while (take_out_states() && !spent()) continue;
  }

 private:
  struct Pair {
    Disagreement left;
    Id from;
    Id into;
  };

  ReplayedTable replayed_;
  Random random_;
  std::int64_t budget_;
  Pulse& pulse_;
  std::vector<std::int64_t> tabu_until_;
  std::int64_t clock_ = 0;
  std::vector<Id> nodes_;
  std::int64_t told_ = 0;

 public:
  Targets best;
  std::int64_t attempts = 0;

 private:
  [[nodiscard]] bool spent() const { return replayed_.visits() > budget_; }

  void beat() {
    do pulse_.beat();
    while ((told_ += 256) < replayed_.visits());
    told_ = std::min(told_, replayed_.visits());
  }

  // Leads all that comes to one state to another. False if too much disagrees then.
  bool merge(Id from, Id into, Disagreement most) {
    for (Id label = 0; label < replayed_.labels(); ++label)
      if (replayed_.traffic(into, label) == 0 && replayed_.traffic(from, label) > 0) {
        const Id target = replayed_.target(from, label);
        if (!replayed_.change(into, label, target == from ? into : target, most)) return false;
      }
    for (Id state = 0; state < replayed_.states(); ++state)
      for (Id label = 0; label < replayed_.labels(); ++label)
        if (replayed_.target(state, label) == from && state != from &&
            !replayed_.change(state, label, into, most))
          return false;
    for (Id label = 0; label < replayed_.labels(); ++label)
      if (replayed_.target(from, label) == from && !replayed_.change(from, label, into, most)) return false;
    return true;
  }

  // Whether some pair of states became one.
  bool take_out_states() {
    std::vector<Pair> pairs;
    std::vector<Id> used;
    for (Id state = 0; state < replayed_.states(); ++state)
      if (replayed_.nodes_in(state) > 0) used.push_back(state);
    std::ranges::stable_sort(used, {}, [&](Id state) { return replayed_.nodes_in(state); });
    for (std::size_t one = 0; one < used.size() && !spent(); ++one)
      for (std::size_t other = one + 1; other < used.size(); ++other) {
        const Id from = used[one];
        const Id into = used[other];
        if (from == 0) continue;
        beat();
        ++attempts;
        if (merge(from, into, most_to_mend)) pairs.push_back({replayed_.disagreement(), from, into});
        replayed_.undo(0);
      }
    std::ranges::stable_sort(pairs, {}, &Pair::left);
    bool any = false;
    std::vector<bool> gone(index(replayed_.states()), false);
    for (const Pair& pair : pairs) {
      if (spent()) break;
      if (gone[index(pair.from)] || gone[index(pair.into)]) continue;
      beat();
      const auto before = used_states();
      if (merge(pair.from, pair.into, any_disagreement) && mend() && used_states() < before) {
        replayed_.forget();
        best = replayed_.targets();
        any = true;
        gone[index(pair.from)] = true;
      } else {
        replayed_.undo(0);
      }
    }
    return any;
  }

  [[nodiscard]] std::size_t used_states() const {
    std::size_t count = 0;
    for (Id state = 0; state < replayed_.states(); ++state) count += replayed_.nodes_in(state) > 0;
    return count;
  }

  struct Change {
    Id state;
    Id label;
    Id target;
    Disagreement left;
  };

  // Changes transitions until nothing disagrees; false when that leads nowhere.
  bool mend() {
    Disagreement least = replayed_.disagreement();
    int in_vain = 0;
    while (replayed_.disagreement() > 0) {
      beat();
      if (in_vain++ > steps_in_vain || spent()) return false;
      const auto change = best_change();
      ++clock_;
      if (!change) continue;
      replayed_.change(change->state, change->label, change->target, any_disagreement);
      tabu_until_[index(change->state * replayed_.labels() + change->label)] = clock_ + tenure;
      if (change->left < least) {
        least = change->left;
        in_vain = 0;
      }
    }
    return true;
  }

  // Of a node with an answer that disagrees, the change that leaves least, among the transitions
  // on its way that are taken least.
  std::optional<Change> best_change() {
    replayed_.rarest_of_conflict(index(random_.below(static_cast<Id>(replayed_.conflicts()))), nodes_);
    const Id node = nodes_[index(random_.below(static_cast<Id>(nodes_.size())))];
    std::vector<std::tuple<Id, Id, Id>> way;  // traffic, state, label
    for (Id at = node; replayed_.parent_of(at) != none; at = replayed_.parent_of(at)) {
      const Id state = replayed_.state_of(replayed_.parent_of(at));
      const Id label = replayed_.label_of(at);
      if (tabu_until_[index(state * replayed_.labels() + label)] > clock_) continue;
      way.emplace_back(replayed_.traffic(state, label), state, label);
    }
    std::ranges::sort(way);
    way.erase(std::ranges::unique(way).begin(), way.end());
    if (way.size() > thinnest) way.resize(thinnest);
    std::optional<Change> chosen;
    const auto mark = replayed_.mark();
    for (const auto& [traffic, state, label] : way)
      for (Id target = 0; target < replayed_.states(); ++target) {
        if (target == replayed_.target(state, label) || replayed_.nodes_in(target) == 0) continue;
        beat();
        ++attempts;
        const Disagreement most = chosen ? chosen->left + slack : any_disagreement;
        const bool within = replayed_.change(state, label, target, most);
        if (within && (!chosen || replayed_.disagreement() < chosen->left))
          chosen = Change{state, label, target, replayed_.disagreement()};
        replayed_.undo(mark);
      }
    return chosen;
  }
};

}  // namespace

Automaton repair_states(const PrefixTree& tree, Id states, std::span<const Transition> transitions,
                        const RepairOptions& options, Pulse& pulse) {
  const LabelCodes labels(tree.histories);
  Targets table(index(states) * index(labels.size()));
  for (std::size_t at = 0; at < table.size(); ++at) table[at] = static_cast<Id>(at / index(labels.size()));
  for (const Transition& move : transitions) table[index(move.state * labels.size() + labels.of(move.label))] = move.target;
  const ClashTree whole = make_clash_tree(tree, labels, index(tree.size()), 0, pulse);
  Repair repair(whole, table, labels.size(), options, pulse);
  try {
    repair.run();
  } catch (const TimeLimitReached&) {
    // What was found so far stands.
  }
  const HistoryTree& histories = tree.histories;
  std::vector<Id> state(index(tree.size()), 0);
  for (std::size_t node = 1; node < state.size(); ++node)
    state[node] = repair.best[index(state[index(histories.parent[node])] * labels.size() + labels.of(histories.label[node]))];
  Pulse unlimited(nullptr, 0);
  Automaton found = merge_as(tree, state, unlimited);
  found.attempts = repair.attempts;
  return found;
}

}  // namespace resolvent
