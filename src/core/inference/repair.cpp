#include "repair.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "clash_tree.hpp"
#include "elementary.hpp"
#include "random.hpp"
#include "replayed_table.hpp"

namespace resolvent {
namespace {

using Nats = ReplayedTable::Nats;
constexpr Nats any_amount = std::numeric_limits<Nats>::max() / 2;

// All measured; docs/decisions/inference.md tells how.

// What may disagree when one state is taken for another, for that to be worth mending.
constexpr Nats most_to_mend = 60'000;

// Of the way to an answer that disagrees, so many transitions are tried: those that are taken least.
constexpr std::size_t thinnest = 6;

// Changes without a gain after which mending is given up, and for how many a transition rests.
constexpr int changes_in_vain = 24;
constexpr int rest = 12;

// How far beyond the best so far a change may go on its way.
constexpr Nats slack = 8'000;

// How large tables may get: 800 MB or so.
constexpr std::size_t most_entries = 100'000'000;

struct Change {
  Id state;
  Id label;
  Id target;
  Nats disagreement;
  Nats surprise;

  bool operator<(const Change& other) const {
    return std::tuple(disagreement, surprise) < std::tuple(other.disagreement, other.surprise);
  }
};

// Two states of which the first is to go, and what disagrees then.
struct Pair {
  Nats disagreement;
  Id from;
  Id into;
};

class Repair {
 public:
  Repair(const ClashTree& tree, Targets table, Id labels, const RepairOptions& options, Pulse& pulse)
      : best(table),
        replayed_(tree, std::move(table), labels),
        random_(options.seed),
        budget_(options.budget),
        pulse_(pulse),
        rests_until_(best.size(), 0) {
    if (replayed_.disagreement() > 0) throw std::invalid_argument("the machine does not explain the samples");
  }

  void run() {
    while (!spent() && take_out_states()) continue;
  }

  Targets best;
  std::int64_t changes = 0;  // that were tried

 private:
  [[nodiscard]] bool spent() const { return replayed_.visits() > budget_; }

  void beat() {
    constexpr std::int64_t visits_per_beat = 256;
    do pulse_.beat();
    while ((visits_told_ += visits_per_beat) < replayed_.visits());
    visits_told_ = std::min(visits_told_, replayed_.visits());
  }

  // Takes out states that other states can stand for; whether there were any.
  bool take_out_states() {
    bool any = false;
    for (const Pair& pair : promising_pairs()) {
      if (spent()) break;
      if (replayed_.nodes_in(pair.from) == 0 || replayed_.nodes_in(pair.into) == 0) continue;
      beat();
      const Nats surprise = replayed_.surprise();
      const std::size_t states = used_states().size();
      const auto mended = merge(pair.from, pair.into, any_amount) ? mend() : std::nullopt;
      if (mended && used_states().size() < states && surprise - replayed_.surprise() > by_chance(*mended, states)) {
        replayed_.forget();
        best = replayed_.targets();
        any = true;
      } else {
        replayed_.undo();
      }
    }
    return any;
  }

  // The pairs of states that leave little to mend, the best first; of each the one with fewer
  // nodes is to go.
  std::vector<Pair> promising_pairs() {
    std::vector<Pair> pairs;
    const std::vector<Id> used = used_states();
    for (std::size_t one = 0; one < used.size() && !spent(); ++one)
      for (std::size_t other = one + 1; other < used.size() && used[one] != 0; ++other) {
        beat();
        ++changes;
        if (merge(used[one], used[other], most_to_mend))
          pairs.push_back({replayed_.disagreement(), used[one], used[other]});
        replayed_.undo();
      }
    std::ranges::stable_sort(pairs, {}, &Pair::disagreement);
    return pairs;
  }

  // The states that nodes are in, those with fewest first.
  [[nodiscard]] std::vector<Id> used_states() const {
    std::vector<Id> used;
    for (Id state = 0; state < replayed_.states(); ++state)
      if (replayed_.nodes_in(state) > 0) used.push_back(state);
    std::ranges::stable_sort(used, {}, [&](Id state) { return replayed_.nodes_in(state); });
    return used;
  }

  // Leads all that comes to one state to another, which takes over the transitions that it does
  // not have itself. False, and to be undone, once more than `most` disagrees.
  bool merge(Id from, Id into, Nats most) {
    const auto other_than_from = [&](Id state) { return state == from ? into : state; };
    for (Id label = 0; label < replayed_.labels(); ++label)
      if (replayed_.traffic(into, label) == 0 && replayed_.traffic(from, label) > 0 &&
          !replayed_.change(into, label, other_than_from(replayed_.target(from, label)), most))
        return false;
    for (Id state = 0; state < replayed_.states(); ++state)
      for (Id label = 0; label < replayed_.labels(); ++label)
        if (replayed_.target(state, label) == from && !replayed_.change(state, label, into, most)) return false;
    return true;
  }

  // Changes transitions until nothing disagrees, and returns how many changes that took; nothing
  // when it leads nowhere.
  std::optional<int> mend() {
    Nats least = replayed_.disagreement();
    int changed = 0;
    for (int in_vain = 0; replayed_.disagreement() > 0; ++in_vain) {
      beat();
      if (in_vain > changes_in_vain || spent()) return std::nullopt;
      ++clock_;
      const auto change = best_change();
      if (!change) continue;
      replayed_.change(change->state, change->label, change->target, any_amount);
      rests_until_[index(change->state * replayed_.labels() + change->label)] = clock_ + rest;
      ++changed;
      if (change->disagreement < least) {
        least = change->disagreement;
        in_vain = 0;
      }
    }
    return changed;
  }

  // The change that leaves least, of a transition that leads to one of the answers in conflict.
  std::optional<Change> best_change() {
    const Id conflict = random_.below(static_cast<Id>(replayed_.conflicts()));
    replayed_.nodes_in_conflict(index(conflict), random_.below(4) > 0, nodes_);
    const Id node = nodes_[index(random_.below(static_cast<Id>(nodes_.size())))];
    const std::size_t mark = replayed_.mark();
    std::optional<Change> best_so_far;
    for (const auto& [traffic, state, label] : thin_transitions(node))
      for (Id target = 0; target < replayed_.states(); ++target) {
        if (target == replayed_.target(state, label) || replayed_.nodes_in(target) == 0) continue;
        beat();
        ++changes;
        const Nats most = best_so_far ? best_so_far->disagreement + slack : any_amount;
        const bool within = replayed_.change(state, label, target, most);
        const Change change{state, label, target, replayed_.disagreement(), replayed_.surprise()};
        if (within && (!best_so_far || change < *best_so_far)) best_so_far = change;
        replayed_.undo(mark);
      }
    return best_so_far;
  }

  // How many nodes take it, its state and its label.
  using Thin = std::tuple<Id, Id, Id>;

  std::vector<Thin> thin_transitions(Id node) const {
    std::vector<Thin> way;
    for (Id at = node; replayed_.parent_of(at) != none; at = replayed_.parent_of(at)) {
      const Id state = replayed_.state_of(replayed_.parent_of(at));
      const Id label = replayed_.label_of(at);
      if (rests_until_[index(state * replayed_.labels() + label)] <= clock_)
        way.emplace_back(replayed_.traffic(state, label), state, label);
    }
    std::ranges::sort(way);
    way.erase(std::ranges::unique(way).begin(), way.end());
    if (way.size() > thinnest) way.resize(thinnest);
    return way;
  }

  // How well answers would agree after so many changes of which each was the best of many.
  static Nats by_chance(int mended, std::size_t states) {
    const double pair = natural_log(static_cast<double>(states));
    const double each = natural_log(static_cast<double>(thinnest * states));
    return std::llround(1000 * (pair + mended * each));
  }

  ReplayedTable replayed_;
  Random random_;
  std::int64_t budget_;
  Pulse& pulse_;
  std::vector<std::int64_t> rests_until_;  // by entry of the table
  std::int64_t clock_ = 0;
  std::int64_t visits_told_ = 0;
  std::vector<Id> nodes_;
};

// The state that a table leads each node of the tree to.
std::vector<Id> states_of_nodes(const HistoryTree& histories, const LabelCodes& labels, const Targets& table) {
  std::vector<Id> state(index(histories.size()), 0);
  for (std::size_t node = 1; node < state.size(); ++node) {
    const Id from = state[index(histories.parent[node])];  // parents come first
    state[node] = table[index(from * labels.size() + labels.of(histories.label[node]))];
  }
  return state;
}

}  // namespace

Automaton repair_states(const PrefixTree& tree, Id states, std::span<const Transition> transitions,
                        const RepairOptions& options, Pulse& pulse) {
  const LabelCodes labels(tree.histories);
  Targets table(index(states) * index(labels.size()));
  for (std::size_t at = 0; at < table.size(); ++at) table[at] = static_cast<Id>(at / index(labels.size()));
  for (const Transition& move : transitions)
    table[index(move.state * labels.size() + labels.of(move.label))] = move.target;
  std::int64_t changes = 0;
  try {
    const ClashTree clashes = make_clash_tree(tree, labels, index(tree.size()), 0, pulse);
    const std::size_t entries = index(labels.size()) + index(clashes.outputs) + index(clashes.alphas);
    if (labels.size() > 0 && index(states) * entries <= most_entries) {
      Repair repair(clashes, table, labels.size(), options, pulse);
      try {
        repair.run();
      } catch (const TimeLimitReached&) {
        // What was found so far stands.
      }
      table = repair.best;
      changes = repair.changes;
    }
  } catch (const TimeLimitReached&) {
    // There was no time to begin.
  }
  Pulse unlimited(nullptr, 0);
  Automaton found = merge_as(tree, states_of_nodes(tree.histories, labels, table), unlimited);
  found.attempts = changes;
  return found;
}

}  // namespace resolvent
