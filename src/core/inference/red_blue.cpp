#include "red_blue.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "completion.hpp"
#include "evidence.hpp"
#include "folding.hpp"
#include "red_outputs.hpp"
#include "staleness.hpp"

namespace resolvent {
namespace {

// A red state that a blue state fits, within the horizon.
struct Fit {
  std::size_t red;  // its number
  std::int64_t score;
  std::int64_t stamp;  // when the score was computed
  bool watched;        // `Staleness` reports when the score becomes stale; otherwise the next merge makes it stale
  bool stale = false;
};

// Blue states are decided by the certainty of their best fit, then by its score.
struct Rank {
  std::int64_t margin;  // over the second-best fit, up to a limit
  std::int64_t score;

  // Better ranks come first.
  friend bool operator<(const Rank& first, const Rank& second) {
    return std::tie(second.margin, second.score) < std::tie(first.margin, first.score);
  }
};

// The fits of a blue state. A refuted pair stays refuted, since states only gain outputs, so that only fits
// are stored.
struct Blue {
  std::vector<Fit> fits;     // by red state
  std::size_t compared = 0;  // number of red states compared so far
  std::optional<Rank> ranked;
};

// Pairs of a red and a blue state that are never merged.
using Apart = std::set<std::pair<Id, Id>>;

// The red-blue framework. Orders choose the next decision; promotion and merging are the same for all.
class RedBlue {
 public:
  // `information` is given for orders that use it in their score.
  RedBlue(const PrefixTree& tree, Watch& watch, const OutputInformation* information = nullptr, Apart apart = {})
      : watch_(watch), tree_(tree), folding_(tree, information), information_(information), apart_(std::move(apart)) {
    watch_.progress = {.nodes = tree.size()};
    red_numbers_.emplace(0, 0);
    folding_.outputs(0, blue_outputs_);
    for (const Output output : blue_outputs_) red_outputs_.add(0, output);
    make_red(0);
  }

  [[nodiscard]] bool done() const { return blue_.empty(); }

  // Decide one blue state, or find that two states conflict.
  void step(Order order) {
    if (order == Order::rpni)
      decide_first_fit();
    else
      decide_best_first();
    watch_.progress.red = static_cast<Id>(automaton.access.size());
    watch_.progress.blue = static_cast<Id>(blue_.size());
  }

  // Merge nodes that have the same state in a known machine.
  void run(std::span<const Id> known) {
    // A machine may have more states than the tree has nodes.
    std::vector<Id> red_as(index(std::ranges::max(known)) + 1, none);
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

  // Repeat earlier decisions.
  void repeat(std::span<const Event> events) {
    for (const Event& event : events)
      if (event.red == none)
        promote(event.blue);
      else if (const auto score = try_fold(event.red, event.blue))
        merged(event.red, event.blue, *score);
      else
        throw std::logic_error("a merge that was made before conflicts");
  }

  // Description length in 256ths of a bit, of all transitions decided so far and of the outputs of all
  // states. Needs `information`.
  [[nodiscard]] std::int64_t description() const {
    OutputCost cost(*information_);
    std::vector<Output> outputs;
    for (const Id state : automaton.access) {
      folding_.outputs(state, outputs);
      for (const Output output : outputs) cost.add(output);
    }
    return cost_of_transitions_ + cost.total();
  }
  [[nodiscard]] std::int64_t cost_of_transitions() const { return cost_of_transitions_; }

  [[nodiscard]] Id state_of(Id node) const {
    while (!folding_.is_red(node)) node = folding_.merged_into(node);
    return node;
  }

  // Number of the state that each node became; none if undecided.
  [[nodiscard]] std::vector<Id> settled() const {
    std::vector<Id> number(index(folding_.size()), none);
    for (std::size_t state = 0; state < automaton.access.size(); ++state)
      number[index(automaton.access[state])] = static_cast<Id>(state);
    std::vector<Id> state_of(number.size());
    for (Id node = 0; node < folding_.size(); ++node) {
      Id end = node;
      while (!folding_.is_red(end) && folding_.merged_into(end) != end) end = folding_.merged_into(end);
      state_of[index(node)] = number[index(end)];
    }
    return state_of;
  }

  Automaton automaton;

 private:
  // Merge the first blue state into the first red state that it fits, or promote it.
  void decide_first_fit() {
    const Id blue = blue_.begin()->first;
    folding_.outputs(blue, blue_outputs_);
    for (std::size_t number = 0; number < automaton.access.size(); ++number) {
      const std::size_t looked_at = number;
      number = red_outputs_.first_without_conflict(number, automaton.access.size(), blue_outputs_);
      automaton.attempts += static_cast<std::int64_t>(number - looked_at);
      if (number == automaton.access.size()) break;
      const Id red = automaton.access[number];
      if (const auto score = try_fold(red, blue)) {
        folding_.each_gain([&](bool is_output, Id state, Id alpha) {
          if (is_output && folding_.is_red(state))
            red_outputs_.add(red_numbers_.at(state), {alpha, folding_.red_output(state, alpha)});
        });
        return merged(red, blue, *score);
      }
    }
    for (const Output output : blue_outputs_) red_outputs_.add(automaton.access.size(), output);
    red_numbers_.emplace(blue, automaton.access.size());
    promote(blue);
  }

  // Promote the first blue state that fits no red state; otherwise merge the best pair. Only blue states in
  // doubt are checked: others fit a red state, and a new red state does not change that.
  void decide_best_first() {
    while (!in_doubt_.empty()) {
      const Id blue = *in_doubt_.begin();
      if (!update_fits(blue)) return promote(blue);
      in_doubt_.erase(in_doubt_.begin());
    }
    if (all_compared_ < automaton.access.size()) {
      for (auto& [blue, known] : blue_)
        if (known.compared < automaton.access.size()) update_fits(blue);
      all_compared_ = automaton.access.size();
    }
    rank_anew();
    const Id blue = ranking_.begin()->second;
    Blue& known = blue_.at(blue);
    const Fit* best = best_of(blue, known).first;
    const Id red = automaton.access[best->red];
    if (const auto score = try_fold(red, blue)) return merged(red, blue, *score);
    unrank(blue, known);  // they conflict beyond the horizon
    known.fits.erase(known.fits.begin() + (best - known.fits.data()));
    in_doubt_.insert(blue);
  }

  // Update the fits of a blue state; return whether there are any.
  bool update_fits(Id blue) {
    Blue& known = blue_.at(blue);
    unrank(blue, known);
    std::erase_if(known.fits, [&](Fit& fit) { return fit.stale && !count(fit, blue); });
    for (; known.compared < automaton.access.size(); ++known.compared)
      if (Fit fit{known.compared, 0, 0, false}; count(fit, blue)) known.fits.push_back(fit);
    if (std::ranges::any_of(known.fits, [](const Fit& fit) { return !fit.watched; })) unwatched_.insert(blue);
    rank(blue, known);
    return !known.fits.empty();
  }

  // Score the merge of a blue state into a red one; return false if they conflict.
  bool count(Fit& fit, Id blue) {
    const Id red = automaton.access[fit.red];
    if (!apart_.empty() && apart_.contains({red, blue})) return false;
    const auto agreeing = try_fold(red, blue, evidence_horizon);
    if (!agreeing) return false;
    if (staleness_.full()) stop_watching();
    const std::int64_t score = information_ == nullptr ? *agreeing : folding_.evidence();
    fit = {fit.red, score, ++clock_, Staleness::can_watch(folding_)};
    if (fit.watched) staleness_.watch(folding_, {red, blue, fit.stamp});
    folding_.undo();
    return true;
  }

  void stop_watching() {
    staleness_.clear();
    for (auto& [blue, known] : blue_)
      for (Fit& fit : known.fits) {
        fit.watched = false;
        unwatched_.insert(blue);
      }
  }

  // Mark a score as stale unless it was computed again since.
  void mark_stale(const Staleness::Score& score) {
    const auto match = blue_.find(score.blue);
    if (match == blue_.end()) return;
    for (Fit& fit : match->second.fits)
      if (fit.stamp == score.stamp) {
        fit.stale = true;
        in_doubt_.insert(score.blue);
      }
  }

  void mark_unwatched_stale(Id blue, Blue& known) {
    for (Fit& fit : known.fits) fit.stale |= !fit.watched;
    in_doubt_.insert(blue);
  }

  void mark_all_stale(Id blue, Blue& known) {
    for (Fit& fit : known.fits) fit.stale = true;
    in_doubt_.insert(blue);
  }

  // Return the best fit, of equals the earliest red state, and its rank. Plain counts have no margin.
  [[nodiscard]] std::pair<const Fit*, Rank> best_of(Id blue, const Blue& known) const {
    const Fit* best = nullptr;
    const std::int64_t most = information_ == nullptr ? 0 : sure_enough;
    Rank rank{most, 0};
    for (const Fit& fit : known.fits) {
      const std::int64_t score = fit.score + gain_of(automaton.access[fit.red], blue);
      if (best == nullptr) {
        rank.score = score;
        best = &fit;
      } else if (score > rank.score) {
        rank = {std::min(most, score - rank.score), score};
        best = &fit;
      } else {
        rank.margin = std::min(rank.margin, rank.score - score);
      }
    }
    return {best, rank};
  }

  [[nodiscard]] TransitionModel::Decision transition_of(Id blue, Id target) const {
    const auto node = index(blue);
    return {tree_.histories.label[node], tree_.last_output[node], folding_.above(blue), target};
  }

  [[nodiscard]] std::int64_t gain_of(Id red, Id blue) const {
    return information_ == nullptr ? 0 : model_.gain(transition_of(blue, red), automaton.access.size());
  }

  // Learn from a decided transition, and mark the ranks that it changes.
  void learn(const TransitionModel::Decision& decision, Id target, std::size_t states_after) {
    if (information_ == nullptr) return;
    const std::size_t states = automaton.access.size();
    cost_of_transitions_ += model_.cost(decision, states);
    model_.learn({decision.label, decision.last_output, decision.source, target});
    // A new state changes the gain of transitions only if the bit width of the number of states changes.
    rank_all_ |= std::bit_width(states) != std::bit_width(states_after);
    moved_.insert(decision.label);
  }

  void rank_anew() {
    if (information_ == nullptr) return;
    for (auto& [blue, known] : blue_)
      if (known.ranked && (rank_all_ || moved_.contains(tree_.histories.label[index(blue)]))) {
        unrank(blue, known);
        rank(blue, known);
      }
    rank_all_ = false;
    moved_.clear();
  }

  void rank(Id blue, Blue& known) {
    if (const auto [best, rank] = best_of(blue, known); best != nullptr) {
      known.ranked = rank;
      ranking_.insert({rank, blue});
    }
  }

  void unrank(Id blue, Blue& known) {
    if (known.ranked) ranking_.erase({*known.ranked, blue});
    known.ranked.reset();
  }

  std::optional<std::int64_t> try_fold(Id red, Id blue, std::size_t within = FoldingTree::unlimited) {
    ++automaton.attempts;
    return folding_.try_fold(red, blue, watch_, within);
  }

  void merged(Id red, Id blue, std::int64_t score) {
    learn(transition_of(blue, red), red, automaton.access.size());
    folding_.keep();
    take_out(blue);
    staleness_.merged(folding_, blue, [&](const Staleness::Score& stale) { mark_stale(stale); });
    folding_.each_target([&](Id state) {
      if (const auto match = folding_.is_red(state) ? blue_.end() : blue_.find(state); match != blue_.end())
        mark_all_stale(state, match->second);
    });
    for (const Id second : unwatched_) mark_unwatched_stale(second, blue_.at(second));
    unwatched_.clear();
    folding_.each_new_blue([&](Id state) { add(state); });
    automaton.events.push_back({red, blue, score, folding_.folded()});
    watch_.progress.settled += folding_.folded();
  }

  void promote(Id blue) {
    learn(transition_of(blue, none), blue, automaton.access.size() + 1);
    take_out(blue);
    staleness_.promoted(blue, [&](const Staleness::Score& stale) { mark_stale(stale); });
    make_red(blue);
    automaton.events.push_back({none, blue, 0, 0});
  }

  void make_red(Id state) {
    folding_.make_red(state);
    automaton.access.push_back(state);
    std::vector<Child> children;
    folding_.children(state, children);
    for (const Child child : children)
      if (!folding_.is_red(child.state)) add(child.state);
    ++watch_.progress.settled;
  }

  void add(Id blue) {
    if (blue_.try_emplace(blue).second) in_doubt_.insert(blue);
  }

  void take_out(Id blue) {
    const auto match = blue_.find(blue);
    unrank(blue, match->second);
    blue_.erase(match);
    in_doubt_.erase(blue);
    unwatched_.erase(blue);
  }

  Watch& watch_;
  const PrefixTree& tree_;
  FoldingTree folding_;
  const OutputInformation* information_;
  Apart apart_;
  TransitionModel model_;
  std::int64_t cost_of_transitions_ = 0;
  std::set<Id> moved_;  // labels whose distribution changed since blue states were ranked
  bool rank_all_ = false;
  std::map<Id, Blue> blue_;                // in shortlex order
  std::set<Id> in_doubt_;                  // blue states that are new or have a stale score
  std::set<Id> unwatched_;                 // blue states with a score that the next merge makes stale
  std::set<std::pair<Rank, Id>> ranking_;  // blue states by rank
  std::size_t all_compared_ = 0;           // number of red states that all blue states were compared with
  Staleness staleness_;
  std::int64_t clock_ = 0;

  // For the order `rpni`.
  RedOutputs red_outputs_;
  std::unordered_map<Id, std::size_t> red_numbers_;  // of the states in `automaton.access`
  std::vector<Output> blue_outputs_;
};

// Sum the counts of the tree's nodes by state.
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
    for (auto seen = tree.first_output[index(node)]; seen < tree.first_output[index(node) + 1]; ++seen) {
      const Output output = tree.outputs[seen];
      Id& at = output_at.at(state, output.alpha);
      if (at == none) {
        at = static_cast<Id>(automaton.outputs.size());
        automaton.outputs.push_back({state, output.alpha, output.output, 0});
      }
      automaton.outputs[index(at)].count += tree.counts[seen];
    }
  }
  std::ranges::sort(automaton.transitions, {}, [](const Transition& t) { return std::tuple(t.state, t.label); });
  std::ranges::sort(automaton.outputs, {}, [](const StateOutput& o) { return std::tuple(o.state, o.alpha); });
  return automaton;
}

// Repeat all later decisions without each merge in turn, and keep what has the shorter description, until a
// whole pass changes nothing.
Automaton backtracking(const PrefixTree& tree, Watch& watch, std::size_t most_states) {
  const OutputInformation information(tree);
  auto best = std::make_unique<RedBlue>(tree, watch, &information);
  try {
    while (!best->done()) best->step(Order::likelihood);
  } catch (const TimeLimitReached&) {
    return completed(tree, best->automaton, best->settled());
  }
  std::int64_t shortest = best->description();
  std::int64_t attempts = best->automaton.attempts;
  Apart apart;
  std::int64_t budget = backtracking_budget;

  // Whether the description is shorter without a merge; then it becomes the best.
  const auto shorter_without = [&](std::size_t at) {
    const std::span<const Event> events = best->automaton.events;
    Apart without = apart;
    without.insert({events[at].red, events[at].blue});
    auto second = std::make_unique<RedBlue>(tree, watch, &information, without);
    second->repeat(events.first(at));
    while (!second->done() && second->automaton.access.size() <= best->automaton.access.size() &&
           second->cost_of_transitions() < shortest)
      second->step(Order::likelihood);
    attempts += second->automaton.attempts;
    const std::size_t repeated = second->automaton.events.size() - at;
    budget -= tree.size() + static_cast<std::int64_t>(repeated * second->automaton.access.size());
    if (!second->done() || second->description() >= shortest) return false;
    shortest = second->description();
    best = std::move(second);
    apart = std::move(without);
    return true;
  };

  try {
    for (bool changed = true; changed && budget > 0;) {
      changed = false;
      for (std::size_t at = 0; at < best->automaton.events.size(); ++at)
        while (at < best->automaton.events.size() && best->automaton.events[at].red != none && budget > 0 &&
               shorter_without(at))
          changed = true;
    }
  } catch (const TimeLimitReached&) {  // the best attempt so far explains all samples, too
  } catch (const WorkLimitReached&) {
  }
  if (best->automaton.access.size() > most_states) throw StateLimitExceeded();
  best->automaton.attempts = attempts;
  return summary(tree, *best);
}

}  // namespace

Automaton merge_states(const PrefixTree& tree, Order order, Watch& watch, std::size_t most_states) {
  if (order == Order::backtracking) return backtracking(tree, watch, most_states);
  const std::optional<OutputInformation> information =
      order == Order::likelihood ? std::optional<OutputInformation>(tree) : std::nullopt;
  RedBlue red_blue(tree, watch, information ? &*information : nullptr);
  try {
    while (!red_blue.done()) {
      red_blue.step(order);
      if (red_blue.automaton.access.size() > most_states) throw StateLimitExceeded();
    }
  } catch (const TimeLimitReached&) {
    return completed(tree, red_blue.automaton, red_blue.settled());
  }
  return summary(tree, red_blue);
}

std::optional<Automaton> merge_states_within(const PrefixTree& tree, Watch& watch, std::size_t states,
                                             std::int64_t attempts) {
  RedBlue red_blue(tree, watch);
  try {
    while (!red_blue.done()) {
      red_blue.step(Order::edsm);
      if (red_blue.automaton.access.size() > states && red_blue.automaton.attempts > attempts) return std::nullopt;
    }
  } catch (const TimeLimitReached&) {
    return completed(tree, red_blue.automaton, red_blue.settled());
  }
  return summary(tree, red_blue);
}

Automaton merge_as(const PrefixTree& tree, std::span<const Id> state_of, Watch& watch) {
  RedBlue red_blue(tree, watch);
  red_blue.run(state_of);
  return summary(tree, red_blue);
}

}  // namespace resolvent
