#include "red_blue.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "folding.hpp"
#include "red_answers.hpp"
#include "staleness.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

// A red state that a blue one fits, as far as was looked.
struct Fit {
  std::size_t red;  // its number
  std::int64_t score;
  std::int64_t stamp;  // when the score was counted
  bool watched;        // told when the score is stale; if not, the next merge makes it so
  bool stale = false;
};

// What is known of one blue state. A refuted pair stays refuted, because states only
// ever gain answers, so that only what fits is kept.
struct Blue {
  std::vector<Fit> fits;   // by red state
  std::size_t judged = 0;  // the red states looked at, the first ones
  std::optional<std::int64_t> ranked;  // the score it is ranked by

  [[nodiscard]] const Fit* best() const {  // the earlier red state of equals
    const auto found = std::ranges::max_element(fits, {}, &Fit::score);
    return found == fits.end() ? nullptr : &*found;
  }
};

// The red-blue framework. Each order settles blue states its own way; what it
// means to promote or to merge is the same for all.
class RedBlue {
 public:
  RedBlue(const PrefixTree& tree, Pulse& pulse) : pulse_(pulse), folding_(tree) {
    pulse_.progress.nodes = tree.size();
    red_numbers_.emplace(0, 0);
    folding_.answers(0, blue_answers_);
    for (const Answer answer : blue_answers_) red_answers_.add(0, answer);
    make_red(0);
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
    folding_.answers(blue, blue_answers_);
    for (std::size_t number = 0; number < automaton.access.size(); ++number) {
      const std::size_t looked_at = number;
      number = red_answers_.first_without_conflict(number, automaton.access.size(), blue_answers_);
      automaton.attempts += static_cast<std::int64_t>(number - looked_at);
      if (number == automaton.access.size()) break;
      const Id red = automaton.access[number];
      if (const auto score = try_fold(red, blue)) {
        folding_.each_gain([&](bool answered, Id state, Id alpha) {
          if (answered && folding_.is_red(state))
            red_answers_.add(red_numbers_.at(state), {alpha, folding_.red_output(state, alpha)});
        });
        return merged(red, blue, *score);
      }
    }
    for (const Answer answer : blue_answers_) red_answers_.add(automaton.access.size(), answer);
    red_numbers_.emplace(blue, automaton.access.size());
    promote(blue);
  }

  // Promotes the first blue state that fits no red one; if there is none,
  // merges the pair on which most answers agree. Only blue states in doubt are looked
  // at: the others fit some red state, and another red state does not change that.
  void settle_surest() {
    while (!in_doubt_.empty()) {
      const Id blue = *in_doubt_.begin();
      if (!judge(blue)) return promote(blue);
      in_doubt_.erase(in_doubt_.begin());
    }
    if (all_judged_ < automaton.access.size()) {
      for (auto& [blue, known] : blue_)
        if (known.judged < automaton.access.size()) judge(blue);
      all_judged_ = automaton.access.size();
    }
    const Id blue = ranking_.begin()->second;
    Blue& known = blue_.at(blue);
    const Fit* best = known.best();
    const Id red = automaton.access[best->red];
    if (const auto score = try_fold(red, blue)) return merged(red, blue, *score);
    unrank(blue, known);  // they conflict beyond the horizon
    known.fits.erase(known.fits.begin() + (best - known.fits.data()));
    in_doubt_.insert(blue);
  }

  // Brings up to date what a blue state fits; whether it fits any red state.
  bool judge(Id blue) {
    Blue& known = blue_.at(blue);
    unrank(blue, known);
    std::erase_if(known.fits, [&](Fit& fit) { return fit.stale && !count(fit, blue); });
    for (; known.judged < automaton.access.size(); ++known.judged)
      if (Fit fit{known.judged, 0, 0, false}; count(fit, blue)) known.fits.push_back(fit);
    if (std::ranges::any_of(known.fits, [](const Fit& fit) { return !fit.watched; })) unwatched_.insert(blue);
    rank(blue, known);
    return !known.fits.empty();
  }

  // Counts the answers that agree if a blue state is merged into a red one; false if
  // some do not.
  bool count(Fit& fit, Id blue) {
    const Id red = automaton.access[fit.red];
    const auto score = try_fold(red, blue, evidence_horizon);
    if (!score) return false;
    if (staleness_.full()) stop_watching();
    fit = {fit.red, *score, ++clock_, Staleness::can_watch(folding_)};
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

  // Takes a score as not counted, unless it has been counted anew since.
  void forget(const Staleness::Score& score) {
    const auto found = blue_.find(score.blue);
    if (found == blue_.end()) return;
    for (Fit& fit : found->second.fits)
      if (fit.stamp == score.stamp) {
        fit.stale = true;
        in_doubt_.insert(score.blue);
      }
  }

  void forget_unwatched(Id blue, Blue& known) {
    for (Fit& fit : known.fits) fit.stale |= !fit.watched;
    in_doubt_.insert(blue);
  }

  void forget_all(Id blue, Blue& known) {
    for (Fit& fit : known.fits) fit.stale = true;
    in_doubt_.insert(blue);
  }

  void rank(Id blue, Blue& known) {
    if (const Fit* best = known.best()) {
      known.ranked = best->score;
      ranking_.insert({-best->score, blue});
    }
  }

  void unrank(Id blue, Blue& known) {
    if (known.ranked) ranking_.erase({-*known.ranked, blue});
    known.ranked.reset();
  }

  std::optional<std::int64_t> try_fold(Id red, Id blue, std::size_t within = FoldingTree::unlimited) {
    ++automaton.attempts;
    return folding_.try_fold(red, blue, pulse_, within);
  }

  void merged(Id red, Id blue, std::int64_t score) {
    folding_.keep();
    take_out(blue);
    staleness_.merged(folding_, blue, [&](const Staleness::Score& stale) { forget(stale); });
    folding_.each_target([&](Id state) {
      if (const auto found = folding_.is_red(state) ? blue_.end() : blue_.find(state); found != blue_.end())
        forget_all(state, found->second);
    });
    for (const Id other : unwatched_) forget_unwatched(other, blue_.at(other));
    unwatched_.clear();
    folding_.each_new_blue([&](Id state) { add(state); });
    automaton.events.push_back({red, blue, score, folding_.folded()});
    pulse_.progress.settled += folding_.folded();
  }

  void promote(Id blue) {
    take_out(blue);
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
      if (!folding_.is_red(child.state)) add(child.state);
    ++pulse_.progress.settled;
  }

  void add(Id blue) {
    if (blue_.try_emplace(blue).second) in_doubt_.insert(blue);
  }

  void take_out(Id blue) {
    const auto found = blue_.find(blue);
    unrank(blue, found->second);
    blue_.erase(found);
    in_doubt_.erase(blue);
    unwatched_.erase(blue);
  }

  Pulse& pulse_;
  FoldingTree folding_;
  std::map<Id, Blue> blue_;  // in shortlex order
  std::set<Id> in_doubt_;    // blue states that are new, or of which a score is stale
  std::set<Id> unwatched_;   // blue states with a score that the next merge makes stale
  std::set<std::pair<std::int64_t, Id>> ranking_;  // blue states by falling score
  std::size_t all_judged_ = 0;  // the red states that every blue one was held against
  Staleness staleness_;
  std::int64_t clock_ = 0;

  // Of the order that takes the first fit.
  RedAnswers red_answers_;
  std::unordered_map<Id, std::size_t> red_numbers_;  // of the states in `automaton.access`
  std::vector<Answer> blue_answers_;
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

Automaton merge_states(const PrefixTree& tree, Order order, Pulse& pulse, std::size_t most_states) {
  RedBlue red_blue(tree, pulse);
  while (!red_blue.done()) {
    red_blue.step(order);
    if (red_blue.automaton.access.size() > most_states) throw TooManyStates();
  }
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
