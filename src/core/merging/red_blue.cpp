#include "red_blue.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "folding.hpp"
#include "staleness.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

// What is known of one blue state against one red state.
struct Verdict {
  enum Kind : std::uint8_t { unknown, refuted, fits } kind = unknown;
  bool watched = false;  // told when the score is stale; if not, the next merge makes it so
  std::int64_t score = 0;
  std::int64_t stamp = 0;  // when the score was counted
};

// The red-blue framework. Each order settles blue states its own way; what it
// means to promote or to merge is the same for all.
class RedBlue {
 public:
  RedBlue(const PrefixTree& tree, Pulse& pulse) : pulse_(pulse), folding_(tree) {
    pulse_.progress.nodes = tree.size();
    make_red(0);
  }

  void run(Order order) {
    while (!done()) step(order);
  }

  [[nodiscard]] bool done() const { return blue_.empty(); }

  // Settles one blue state, or learns that two states conflict.
  void step(Order order) {
    if (order == Order::rpni)
      settle_first();
    else
      settle_surest();
    pulse_.progress.red = static_cast<Id>(automaton.access.size());
    pulse_.progress.blue = static_cast<Id>(blue_.size());
  }

  // Merges what a known machine takes to the same state.
  void run(std::span<const Id> known) {
    std::vector<Id> red_as(known.size(), none);
    red_as[index(known[0])] = 0;
    while (!blue_.empty()) {
      const Id blue = blue_.begin()->first;
      Id& red = red_as[index(known[index(blue)])];
      if (red == none) {
        red = blue;
        promote(blue);
      } else if (const auto score = try_fold(red, blue)) {
        merged(red, blue, *score);
      } else {
        throw std::logic_error("the known machine does not explain the tree");
      }
    }
  }

  [[nodiscard]] Id state_of(Id node) const {
    while (!folding_.is_red(node)) node = folding_.merged_into(node);
    return node;
  }

  Automaton automaton;

 private:
  // Takes the first blue state to the first red one that it fits.
  void settle_first() {
    const Id blue = blue_.begin()->first;
    for (const Id red : automaton.access)
      if (const auto score = try_fold(red, blue)) return merged(red, blue, *score);
    promote(blue);
  }

  // Promotes the first blue state that fits no red one; if there is none,
  // merges the pair on which most answers agree.
  void settle_surest() {
    Id best_red = none;
    Id best_blue = none;
    Verdict* best = nullptr;
    for (auto& [blue, verdicts] : blue_) {
      verdicts.resize(automaton.access.size());
      bool fits = false;
      for (std::size_t number = 0; number < verdicts.size(); ++number) {
        const Id red = automaton.access[number];
        Verdict& verdict = verdicts[number];
        judge(verdict, red, blue);
        if (verdict.kind == Verdict::refuted) continue;
        fits = true;
        if (best == nullptr || verdict.score > best->score) {
          best = &verdict;
          best_red = red;
          best_blue = blue;
        }
      }
      if (!fits) return promote(blue);
    }
    if (const auto score = try_fold(best_red, best_blue))
      merged(best_red, best_blue, *score);
    else
      best->kind = Verdict::refuted;  // they conflict beyond the horizon
  }

  // Brings a verdict up to date. A refuted pair stays refuted, because states
  // only ever gain answers; a score holds until a merge touches what it rests on.
  void judge(Verdict& verdict, Id red, Id blue) {
    if (verdict.kind == Verdict::refuted) return;
    if (verdict.kind == Verdict::fits && (verdict.watched || verdict.stamp >= last_merge_)) return;
    if (const auto score = try_fold(red, blue, evidence_horizon)) {
      if (staleness_.full()) stop_watching();
      verdict = {Verdict::fits, Staleness::can_watch(folding_), *score, ++clock_};
      if (verdict.watched) staleness_.watch(folding_, {red, blue, verdict.stamp});
      folding_.undo();
    } else {
      verdict.kind = Verdict::refuted;
    }
  }

  void stop_watching() {
    staleness_.clear();
    for (auto& [blue, verdicts] : blue_)
      for (Verdict& verdict : verdicts) verdict.watched = false;
  }

  // Takes a score as not counted, unless it has been counted anew since.
  void forget(const Staleness::Score& score) {
    const auto found = blue_.find(score.blue);
    if (found == blue_.end()) return;
    for (Verdict& verdict : found->second)
      if (verdict.stamp == score.stamp && verdict.kind == Verdict::fits) verdict.kind = Verdict::unknown;
  }

  std::optional<std::int64_t> try_fold(Id red, Id blue, std::size_t within = FoldingTree::unlimited) {
    ++automaton.attempts;
    return folding_.try_fold(red, blue, pulse_, within);
  }

  void merged(Id red, Id blue, std::int64_t score) {
    folding_.keep();
    blue_.erase(blue);
    staleness_.merged(folding_, blue, [&](const Staleness::Score& stale) { forget(stale); });
    folding_.each_target([&](Id state) {
      if (const auto found = folding_.is_red(state) ? blue_.end() : blue_.find(state); found != blue_.end())
        for (Verdict& verdict : found->second)
          if (verdict.kind == Verdict::fits) verdict.kind = Verdict::unknown;
    });
    folding_.each_new_blue([&](Id state) { blue_.try_emplace(state); });
    automaton.events.push_back({red, blue, score, folding_.folded()});
    pulse_.progress.settled += folding_.folded();
    last_merge_ = ++clock_;
  }

  void promote(Id blue) {
    blue_.erase(blue);
    staleness_.promoted(blue, [&](const Staleness::Score& stale) { forget(stale); });
    make_red(blue);
    automaton.events.push_back({none, blue, 0, 0});
  }

  void make_red(Id state) {
    folding_.make_red(state);
    automaton.access.push_back(state);
    std::vector<Child> children;
    folding_.children(state, children);
    for (const Child child : children)
      if (!folding_.is_red(child.state)) blue_.try_emplace(child.state);
    ++pulse_.progress.settled;
  }

  Pulse& pulse_;
  FoldingTree folding_;
  std::map<Id, std::vector<Verdict>> blue_;  // in shortlex order; a verdict per red state
  Staleness staleness_;
  std::int64_t clock_ = 0;
  std::int64_t last_merge_ = 0;
};

// Sums what the tree's nodes saw over the states that they became.
Automaton summary(const PrefixTree& tree, const RedBlue& result) {
  Automaton automaton = result.automaton;
  const HistoryTree& histories = tree.histories;
  std::vector<Id> number(histories.parent.size(), none);
  for (std::size_t state = 0; state < automaton.access.size(); ++state)
    number[index(automaton.access[state])] = static_cast<Id>(state);

  std::vector<Id> state_of(histories.parent.size());
  PairMap transition_at;
  PairMap output_at;
  for (Id node = 0; node < tree.size(); ++node) {
    const Id state = number[index(result.state_of(node))];
    state_of[index(node)] = state;
    if (node > 0) {
      const Id source = state_of[index(histories.parent[index(node)])];  // parents come first
      const Id label = histories.label[index(node)];
      Id& at = transition_at.at(source, label);
      if (at == none) {
        at = static_cast<Id>(automaton.transitions.size());
        automaton.transitions.push_back({source, label, state, 0});
      }
      automaton.transitions[index(at)].count += histories.visits[index(node)];
    }
    for (auto seen = tree.first_answer[index(node)]; seen < tree.first_answer[index(node) + 1]; ++seen) {
      const Answer answer = tree.answers[seen];
      Id& at = output_at.at(state, answer.alpha);
      if (at == none) {
        at = static_cast<Id>(automaton.outputs.size());
        automaton.outputs.push_back({state, answer.alpha, answer.output, 0});
      }
      automaton.outputs[index(at)].count += tree.counts[seen];
    }
  }
  std::ranges::sort(automaton.transitions, {}, [](const Transition& t) { return std::tuple(t.state, t.label); });
  std::ranges::sort(automaton.outputs, {}, [](const Output& o) { return std::tuple(o.state, o.alpha); });
  return automaton;
}

}  // namespace

Automaton merge_states(const PrefixTree& tree, Order order, Pulse& pulse) {
  RedBlue red_blue(tree, pulse);
  red_blue.run(order);
  return summary(tree, red_blue);
}

std::optional<Automaton> merge_states_within(const PrefixTree& tree, Pulse& pulse, std::size_t states,
                                             std::int64_t attempts) {
  RedBlue red_blue(tree, pulse);
  while (!red_blue.done()) {
    red_blue.step(Order::edsm);
    if (red_blue.automaton.access.size() > states && red_blue.automaton.attempts > attempts) return std::nullopt;
  }
  return summary(tree, red_blue);
}

Automaton merge_as(const PrefixTree& tree, std::span<const Id> state_of, Pulse& pulse) {
  RedBlue red_blue(tree, pulse);
  red_blue.run(state_of);
  return summary(tree, red_blue);
}

}  // namespace resolvent
