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

// The time limit has passed when this begins: the limit on visited nodes in all keeps it to about a tenth
// of a second; the other is for each possible target of a transition.
constexpr std::int64_t most_looks = 10'000'000;
constexpr std::int64_t most_looks_per_state = 64;

class Completion {
 public:
  Completion(const PrefixTree& tree, Automaton so_far, std::span<const Id> settled)
      : tree_(tree), states_(static_cast<Id>(so_far.access.size())), automaton_(std::move(so_far)) {
    state_of_.assign(settled.begin(), settled.end());
    for (Id node = 0; node < tree.size(); ++node)
      if (settled[index(node)] != none) note(node, settled[index(node)]);
  }

  Automaton run() {
    for (Id node = 1; node < tree_.size(); ++node) {
      Id& state = state_of_[index(node)];
      const Id source = state_of_[index(tree_.histories.parent[index(node)])];  // parents come first
      const Id label = tree_.histories.label[index(node)];
      if (state != none) continue;
      state = transitions_.find(source, label);
      if (state == none) state = settle(node, source, label);
      if (const Id event = event_of_.find(source, label); event != none) ++automaton_.events[index(event)].folded;
    }
    count();
    automaton_.finished = false;
    return std::move(automaton_);
  }

 private:
  // Record the outputs and the transition of a node whose state is known.
  void note(Id node, Id state) {
    if (node > 0)
      transitions_.at(state_of_[index(tree_.histories.parent[index(node)])], tree_.histories.label[index(node)]) =
          state;
    for (auto at = tree_.first_output[index(node)]; at < tree_.first_output[index(node) + 1]; ++at)
      outputs_.at(state, tree_.outputs[at].alpha) = tree_.outputs[at].output;
  }

  // Choose the target of a transition, and record it.
  Id settle(Id node, Id source, Id label) {
    Id best = 0;
    std::int64_t most = agreement(node, 0);
    for (Id state = 1; state < states_ && looks_ < most_looks; ++state)
      if (const auto agreement_of = agreement(node, state); agreement_of > most) {
        most = agreement_of;
        best = state;
      }
    transitions_.at(source, label) = best;
    event_of_.at(source, label) = static_cast<Id>(automaton_.events.size());
    automaton_.events.push_back({automaton_.access[index(best)], node, std::max<std::int64_t>(most, 0), 0});
    return best;
  }

  // Number of outputs at and below a node that agree with those of a state, less those that do not.
  std::int64_t agreement(Id node, Id state) {
    std::int64_t agreement_of = 0;
    ahead_.assign(1, {node, state});
    for (std::size_t at = 0; at < ahead_.size() && static_cast<std::int64_t>(at) < most_looks_per_state;
         ++at, ++looks_) {
      const auto [below, as] = ahead_[at];
      for (auto seen = tree_.first_output[index(below)]; seen < tree_.first_output[index(below) + 1]; ++seen) {
        const Id known = outputs_.find(as, tree_.outputs[seen].alpha);
        if (known != none) agreement_of += known == tree_.outputs[seen].output ? 1 : -1;
      }
      const HistoryTree& histories = tree_.histories;
      for (Id child = histories.first_child[index(below)]; child < histories.first_child[index(below) + 1]; ++child)
        if (const Id target = transitions_.find(as, histories.label[index(child)]); target != none)
          ahead_.push_back({child, target});
    }
    return agreement_of;
  }

  // Sum the counts of the nodes by state, and choose the most frequent output of each query.
  void count() {
    const HistoryTree& histories = tree_.histories;
    PairMap transition_at;
    PairMap query_at;
    PairMap output_at;  // (query, output) → index in `totals`
    std::vector<StateOutput> totals;
    std::vector<StateOutput> queries;
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
      for (auto seen = tree_.first_output[index(node)]; seen < tree_.first_output[index(node) + 1]; ++seen) {
        const auto [alpha, output] = tree_.outputs[seen];
        Id& query = query_at.at(state, alpha);
        if (query == none) {
          query = static_cast<Id>(queries.size());
          queries.push_back({state, alpha, none, 0});
        }
        const Id query_number = query;
        Id& at = output_at.at(query_number, output);
        if (at == none) {
          at = static_cast<Id>(totals.size());
          totals.push_back({query_number, alpha, output, 0});  // by query instead of state
        }
        totals[index(at)].count += tree_.counts[seen];
        automaton_.wrong += tree_.counts[seen];
      }
    }
    for (const StateOutput& output : totals) {
      StateOutput& main = queries[index(output.state)];
      if (std::tuple(-output.count, output.output) < std::tuple(-main.count, main.output)) {
        main.output = output.output;
        main.count = output.count;
      }
    }
    for (const StateOutput& main : queries) automaton_.wrong -= main.count;
    automaton_.outputs = std::move(queries);
    std::ranges::sort(automaton_.transitions, {}, [](const Transition& t) { return std::tuple(t.state, t.label); });
    std::ranges::sort(automaton_.outputs, {}, [](const StateOutput& o) { return std::tuple(o.state, o.alpha); });
  }

  struct Ahead {
    Id node;
    Id state;
  };

  const PrefixTree& tree_;
  Id states_;
  Automaton automaton_;
  std::vector<Id> state_of_;
  PairMap transitions_;  // (state, label) → target
  PairMap outputs_;      // (state, alpha) → output
  PairMap event_of_;     // (state, label) → the event that chose the target
  std::vector<Ahead> ahead_;
  std::int64_t looks_ = 0;
};

}  // namespace

Automaton completed(const PrefixTree& tree, Automaton so_far, std::span<const Id> settled) {
  return Completion(tree, std::move(so_far), settled).run();
}

}  // namespace resolvent
