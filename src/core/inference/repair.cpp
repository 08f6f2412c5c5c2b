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

#include "arithmetic.hpp"
#include "conflict_tree.hpp"
#include "random.hpp"
#include "replayed_table.hpp"

namespace resolvent {
namespace {

using Nats = ReplayedTable::Nats;
constexpr Nats any_amount = std::numeric_limits<Nats>::max() / 2;

// Parameters were chosen by measurement; see docs/decisions/inference.md.

// Maximum disagreement after merging two states that is worth a repair.
constexpr Nats most_to_repair = 60'000;

// Number of transitions to try on the path to a conflicting output: those used least.
constexpr std::size_t least_taken = 6;

// Number of changes without gain after which a repair is given up, and during which a changed transition is
// tabu.
constexpr int most_changes_without_gain = 24;
constexpr int tabu_changes = 12;

// Maximum disagreement of a change above the best one so far.
constexpr Nats slack = 8'000;

// Table size limit, about 800 MB.
constexpr std::size_t most_entries = 100'000'000;

struct Change {
  Id state;
  Id label;
  Id target;
  Nats disagreement;
  Nats information;

  bool operator<(const Change& other) const {
    return std::tuple(disagreement, information) < std::tuple(other.disagreement, other.information);
  }
};

// Two states, the first to be removed, and the resulting disagreement.
struct Pair {
  Nats disagreement;
  Id from;
  Id into;
};

class Repair {
 public:
  Repair(const ConflictTree& tree, Targets table, Id labels, const RepairOptions& options, Watch& watch)
      : best(table),
        replayed_(tree, std::move(table), labels),
        random_(options.seed),
        budget_(options.budget),
        watch_(watch),
        tabu_until_(best.size(), 0) {
    if (replayed_.disagreement() > 0) throw std::invalid_argument("the machine does not explain the samples");
  }

  void run() {
    while (!spent() && remove_states()) continue;
  }

  Targets best;
  std::int64_t changes = 0;  // number tried

 private:
  [[nodiscard]] bool spent() const { return replayed_.visits() > budget_; }

  void tick() {
    constexpr std::int64_t visits_per_tick = 256;
    do watch_.tick();
    while ((visits_reported_ += visits_per_tick) < replayed_.visits());
    visits_reported_ = std::min(visits_reported_, replayed_.visits());
  }

  // Remove states that can be merged into others; return whether there were any.
  bool remove_states() {
    bool any = false;
    for (const Pair& pair : candidate_pairs()) {
      if (spent()) break;
      if (replayed_.nodes_in(pair.from) == 0 || replayed_.nodes_in(pair.into) == 0) continue;
      tick();
      const Nats information = replayed_.information();
      const std::size_t states = used_states().size();
      const auto repaired = merge(pair.from, pair.into, any_amount) ? repair() : std::nullopt;
      if (repaired && used_states().size() < states &&
          information - replayed_.information() > gain_by_chance(*repaired, states)) {
        replayed_.forget();
        best = replayed_.targets();
        any = true;
      } else {
        replayed_.undo();
      }
    }
    return any;
  }

  // Return the pairs of states with little disagreement when merged, the best first; of each pair, the
  // state with fewer nodes is removed.
  std::vector<Pair> candidate_pairs() {
    std::vector<Pair> pairs;
    const std::vector<Id> used = used_states();
    for (std::size_t first = 0; first < used.size() && !spent(); ++first)
      for (std::size_t second = first + 1; second < used.size() && used[first] != 0; ++second) {
        tick();
        ++changes;
        if (merge(used[first], used[second], most_to_repair))
          pairs.push_back({replayed_.disagreement(), used[first], used[second]});
        replayed_.undo();
      }
    std::ranges::stable_sort(pairs, {}, &Pair::disagreement);
    return pairs;
  }

  // States with nodes, by ascending number of nodes.
  [[nodiscard]] std::vector<Id> used_states() const {
    std::vector<Id> used;
    for (Id state = 0; state < replayed_.states(); ++state)
      if (replayed_.nodes_in(state) > 0) used.push_back(state);
    std::ranges::stable_sort(used, {}, [&](Id state) { return replayed_.nodes_in(state); });
    return used;
  }

  // Redirect all transitions from one state to another, which inherits its missing transitions. Return
  // false, to be undone, once the disagreement exceeds `most`.
  bool merge(Id from, Id into, Nats most) {
    const auto redirected = [&](Id state) { return state == from ? into : state; };
    for (Id label = 0; label < replayed_.labels(); ++label)
      if (replayed_.traffic(into, label) == 0 && replayed_.traffic(from, label) > 0 &&
          !replayed_.change(into, label, redirected(replayed_.target(from, label)), most))
        return false;
    for (Id state = 0; state < replayed_.states(); ++state)
      for (Id label = 0; label < replayed_.labels(); ++label)
        if (replayed_.target(state, label) == from && !replayed_.change(state, label, into, most)) return false;
    return true;
  }

  // Change transitions until nothing disagrees; return the number of changes, or nullopt if it fails.
  std::optional<int> repair() {
    Nats least = replayed_.disagreement();
    int changed = 0;
    for (int without_gain = 0; replayed_.disagreement() > 0; ++without_gain) {
      tick();
      if (without_gain > most_changes_without_gain || spent()) return std::nullopt;
      ++clock_;
      const auto change = best_change();
      if (!change) continue;
      replayed_.change(change->state, change->label, change->target, any_amount);
      tabu_until_[index(change->state * replayed_.labels() + change->label)] = clock_ + tabu_changes;
      ++changed;
      if (change->disagreement < least) {
        least = change->disagreement;
        without_gain = 0;
      }
    }
    return changed;
  }

  // Return the change with the least disagreement, of a transition on the path to an output in conflict.
  std::optional<Change> best_change() {
    const Id conflict = random_.below(static_cast<Id>(replayed_.conflicts()));
    replayed_.nodes_in_conflict(index(conflict), random_.below(4) > 0, nodes_);
    const Id node = nodes_[index(random_.below(static_cast<Id>(nodes_.size())))];
    const std::size_t mark = replayed_.mark();
    std::optional<Change> best_so_far;
    for (const auto& [traffic, state, label] : least_taken_transitions(node))
      for (Id target = 0; target < replayed_.states(); ++target) {
        if (target == replayed_.target(state, label) || replayed_.nodes_in(target) == 0) continue;
        tick();
        ++changes;
        const Nats most = best_so_far ? best_so_far->disagreement + slack : any_amount;
        const bool within = replayed_.change(state, label, target, most);
        const Change change{state, label, target, replayed_.disagreement(), replayed_.information()};
        if (within && (!best_so_far || change < *best_so_far)) best_so_far = change;
        replayed_.undo(mark);
      }
    return best_so_far;
  }

  // Number of nodes that use it, its state, its label.
  using UsedTransition = std::tuple<Id, Id, Id>;

  std::vector<UsedTransition> least_taken_transitions(Id node) const {
    std::vector<UsedTransition> path;
    for (Id at = node; replayed_.parent_of(at) != none; at = replayed_.parent_of(at)) {
      const Id state = replayed_.state_of(replayed_.parent_of(at));
      const Id label = replayed_.label_of(at);
      if (tabu_until_[index(state * replayed_.labels() + label)] <= clock_)
        path.emplace_back(replayed_.traffic(state, label), state, label);
    }
    std::ranges::sort(path);
    path.erase(std::ranges::unique(path).begin(), path.end());
    if (path.size() > least_taken) path.resize(least_taken);
    return path;
  }

  // Gain in agreement expected by chance, as each change was the best of many.
  static Nats gain_by_chance(int repaired, std::size_t states) {
    const double pair = natural_log(static_cast<double>(states));
    const double each = natural_log(static_cast<double>(least_taken * states));
    return std::llround(1000 * (pair + repaired * each));
  }

  ReplayedTable replayed_;
  Random random_;
  std::int64_t budget_;
  Watch& watch_;
  std::vector<std::int64_t> tabu_until_;  // by entry of the table
  std::int64_t clock_ = 0;
  std::int64_t visits_reported_ = 0;
  std::vector<Id> nodes_;
};

// Return the state of each node under a table.
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
                        const RepairOptions& options, Watch& watch) {
  const LabelCodes labels(tree.histories);
  Targets table(index(states) * index(labels.size()));
  for (std::size_t at = 0; at < table.size(); ++at) table[at] = static_cast<Id>(at / index(labels.size()));
  for (const Transition& transition : transitions)
    table[index(transition.state * labels.size() + labels.of(transition.label))] = transition.target;
  std::int64_t changes = 0;
  try {
    const ConflictTree conflicts = make_conflict_tree(tree, labels, index(tree.size()), 0, watch);
    const std::size_t entries = index(labels.size()) + index(conflicts.outputs) + index(conflicts.alphas);
    if (labels.size() > 0 && index(states) * entries <= most_entries) {
      Repair repair(conflicts, table, labels.size(), options, watch);
      try {
        repair.run();
      } catch (const TimeLimitReached&) {
        // Keep the best so far.
      }
      table = repair.best;
      changes = repair.changes;
    }
  } catch (const TimeLimitReached&) {
    // No time to start.
  }
  Watch unlimited(nullptr, 0);
  Automaton automaton = merge_as(tree, states_of_nodes(tree.histories, labels, table), unlimited);
  automaton.attempts = changes;
  return automaton;
}

}  // namespace resolvent
