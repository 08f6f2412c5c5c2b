#include "completion.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "pair_map.hpp"

namespace resolvent {
namespace {

// Time is over when this begins: so many nodes may be looked at in all, so that it takes
// about a tenth of a second, and so many for one state that may be the target of a move.
constexpr std::int64_t looks_in_all = 10'000'000;
constexpr std::int64_t looks_for_one = 64;

class Completion {
 public:
  Completion(const PrefixTree& tree, Automaton so_far, std::span<const Id> settled)
      : tree_(tree), states_(static_cast<Id>(so_far.access.size())), automaton_(std::move(so_far)) {
    state_of_.assign(settled.begin(), settled.end());
    for (Id node = 0; node < tree.size(); ++node)
      if (settled[index(node)] != none) know(node, settled[index(node)]);
  }

  Automaton run() {
    for (Id node = 1; node < tree_.size(); ++node) {
      Id& state = state_of_[index(node)];
      const Id source = state_of_[index(tree_.histories.parent[index(node)])];  // parents come first
      const Id label = tree_.histories.label[index(node)];
      if (state != none) continue;
      state = moves_.find(source, label);
      if (state == none) state = settle(node, source, label);
      if (const Id event = event_of_.find(source, label); event != none) ++automaton_.events[index(event)].folded;
    }
    count();
    automaton_.finished = false;
    return std::move(automaton_);
  }

 private:
  // Takes what a settled node answers, and the way to it, as what its states answer and do.
  void know(Id node, Id state) {
    if (node > 0)
      moves_.at(state_of_[index(tree_.histories.parent[index(node)])], tree_.histories.label[index(node)]) = state;
    for (auto at = tree_.first_answer[index(node)]; at < tree_.first_answer[index(node) + 1]; ++at)
      answers_.at(state, tree_.answers[at].alpha) = tree_.answers[at].output;
  }

  // Chooses where a move leads, and notes that.
  Id settle(Id node, Id source, Id label) {
    Id best = 0;
    std::int64_t most = agreement(node, 0);
    for (Id state = 1; state < states_ && looks_ < looks_in_all; ++state)
      if (const auto found = agreement(node, state); found > most) {
        most = found;
        best = state;
      }
    moves_.at(source, label) = best;
    event_of_.at(source, label) = static_cast<Id>(automaton_.events.size());
    automaton_.events.push_back({automaton_.access[index(best)], node, std::max<std::int64_t>(most, 0), 0});
    return best;
  }

  // How many answers at and below a node agree with a state's, less those that do not.
  std::int64_t agreement(Id node, Id state) {
    std::int64_t found = 0;
    ahead_.assign(1, {node, state});
    for (std::size_t at = 0; at < ahead_.size() && static_cast<std::int64_t>(at) < looks_for_one; ++at, ++looks_) {
      const auto [below, as] = ahead_[at];
      for (auto seen = tree_.first_answer[index(below)]; seen < tree_.first_answer[index(below) + 1]; ++seen) {
        const Id known = answers_.find(as, tree_.answers[seen].alpha);
        if (known != none) found += known == tree_.answers[seen].output ? 1 : -1;
      }
      const HistoryTree& histories = tree_.histories;
      for (Id child = histories.first_child[index(below)]; child < histories.first_child[index(below) + 1]; ++child)
        if (const Id target = moves_.find(as, histories.label[index(child)]); target != none)
          ahead_.push_back({child, target});
    }
    return found;
  }

  // Sums what the nodes saw over their states, and takes the main answer of each query.
  void count() {
    const HistoryTree& histories = tree_.histories;
    PairMap transition_at;
    PairMap query_at;
    PairMap answer_at;  // (query, output) → place in `given`
    std::vector<Output> given;
    std::vector<Output> queries;
    for (Id node = 0; node < tree_.size(); ++node) {
      const Id state = state_of_[index(node)];
      if (node > 0) {
        const Id source = state_of_[index(histories.parent[index(node)])];
        Id& at = transition_at.at(source, histories.label[index(node)]);
        if (at == none) {
          at = static_cast<Id>(automaton_.transitions.size());
          automaton_.transitions.push_back({source, histories.label[index(node)], state, 0});
        }
        automaton_.transitions[index(at)].count += histories.visits[index(node)];
      }
      for (auto seen = tree_.first_answer[index(node)]; seen < tree_.first_answer[index(node) + 1]; ++seen) {
        const auto [alpha, output] = tree_.answers[seen];
        Id& query = query_at.at(state, alpha);
        if (query == none) {
          query = static_cast<Id>(queries.size());
          queries.push_back({state, alpha, none, 0});
        }
        const Id asked = query;
        Id& at = answer_at.at(asked, output);
        if (at == none) {
          at = static_cast<Id>(given.size());
          given.push_back({asked, alpha, output, 0});  // by query instead of state
        }
        given[index(at)].count += tree_.counts[seen];
        automaton_.wrong += tree_.counts[seen];
      }
    }
    for (const Output& one : given) {
      Output& main = queries[index(one.state)];
      if (std::tuple(-one.count, one.output) < std::tuple(-main.count, main.output)) {
        main.output = one.output;
        main.count = one.count;
      }
    }
    for (const Output& main : queries) automaton_.wrong -= main.count;
    automaton_.outputs = std::move(queries);
    std::ranges::sort(automaton_.transitions, {}, [](const Transition& t) { return std::tuple(t.state, t.label); });
    std::ranges::sort(automaton_.outputs, {}, [](const Output& o) { return std::tuple(o.state, o.alpha); });
  }

  struct Ahead {
    Id node;
    Id state;
  };

  const PrefixTree& tree_;
  Id states_;
  Automaton automaton_;
  std::vector<Id> state_of_;
  PairMap moves_;     // (state, label) → target
  PairMap answers_;   // (state, alpha) → output
  PairMap event_of_;  // (state, label) → the event that chose the target here
  std::vector<Ahead> ahead_;
  std::int64_t looks_ = 0;
};

}  // namespace

Automaton completed(const PrefixTree& tree, Automaton so_far, std::span<const Id> settled) {
  return Completion(tree, std::move(so_far), settled).run();
}

}  // namespace resolvent
