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
#include "red_answers.hpp"
#include "staleness.hpp"

namespace resolvent {
namespace {

// A red state that a blue one fits, as far as was looked.
struct Fit {
  std::size_t red;  // its number
  std::int64_t score;
  std::int64_t stamp;  // when the score was counted
  bool watched;        // told when the score is stale; if not, the next merge makes it so
  bool stale = false;
};

// Blue states are taken by how sure their best fit is, then by its score.
struct Rank {
  std::int64_t margin;  // to the next best fit, as far as that matters
  std::int64_t score;

  // The better one comes first.
  friend bool operator<(const Rank& one, const Rank& other) {
    return std::tie(other.margin, other.score) < std::tie(one.margin, one.score);
  }
};

// What is known of one blue state. A refuted pair stays refuted, because states only
// ever gain answers, so that only what fits is kept.
struct Blue {
  std::vector<Fit> fits;   // by red state
  std::size_t judged = 0;  // the red states looked at, the first ones
  std::optional<Rank> ranked;

};

// Pairs of a red and a blue state that are not merged, whatever they agree on.
using Apart = std::set<std::pair<Id, Id>>;

// The red-blue framework. Each order settles blue states its own way; what it
// means to promote or to merge is the same for all.
class RedBlue {
 public:
  // What answers are worth is given to orders that weigh them.
  RedBlue(const PrefixTree& tree, Pulse& pulse, const Worth* worth = nullptr, Apart apart = {})
      : pulse_(pulse), tree_(tree), folding_(tree, worth), worth_(worth), apart_(std::move(apart)) {
    pulse_.progress = {.nodes = tree.size()};
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

  // Decides again as it was decided before.
  void repeat(std::span<const Event> events) {
    for (const Event& event : events)
      if (event.red == none)
        promote(event.blue);
      else if (const auto score = try_fold(event.red, event.blue))
        merged(event.red, event.blue, *score);
      else
        throw std::logic_error("a merge that was made before conflicts");
  }

  // How many 256ths of a bit it takes to tell all moves decided so far, and the answers of
  // all states; only if answers are weighed.
  [[nodiscard]] std::int64_t description() const {
    AnswerCost cost(*worth_);
    std::vector<Answer> answers;
    for (const Id state : automaton.access) {
      folding_.answers(state, answers);
      for (const Answer answer : answers) cost.add(answer);
    }
    return cost_of_moves_ + cost.total();
  }
  [[nodiscard]] std::int64_t cost_of_moves() const { return cost_of_moves_; }

  [[nodiscard]] Id state_of(Id node) const {
    while (!folding_.is_red(node)) node = folding_.merged_into(node);
    return node;
  }

  // The number of the state that each node became; none while that is open.
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
    if (!apart_.empty() && apart_.contains({red, blue})) return false;
    const auto agreeing = try_fold(red, blue, evidence_horizon);
    if (!agreeing) return false;
    if (staleness_.full()) stop_watching();
    const std::int64_t score = worth_ == nullptr ? *agreeing : folding_.evidence();
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

  // The best fit, the earlier red state of equals, and how it ranks. Counted answers
  // have no margin: what else fits matters only to those who weigh.
  [[nodiscard]] std::pair<const Fit*, Rank> best_of(Id blue, const Blue& known) const {
    const Fit* best = nullptr;
    const std::int64_t most = worth_ == nullptr ? 0 : sure_enough;
    Rank rank{most, 0};
    for (const Fit& fit : known.fits) {
      const std::int64_t score = fit.score + usual(automaton.access[fit.red], blue);
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

  [[nodiscard]] Habits::Move move_of(Id blue, Id target) const {
    const auto node = index(blue);
    return {tree_.histories.label[node], tree_.lead[node], folding_.above(blue), target};
  }

  [[nodiscard]] std::int64_t usual(Id red, Id blue) const {
    return worth_ == nullptr ? 0 : habits_.favour(move_of(blue, red), automaton.access.size());
  }

  // Learns from a move that is decided, and ranks anew what that makes more or less usual.
  void learn(const Habits::Move& move, Id target, std::size_t states_after) {
    if (worth_ == nullptr) return;
    const std::size_t states = automaton.access.size();
    cost_of_moves_ += habits_.cost(move, states);
    habits_.see({move.label, move.lead, move.from, target});
    // A new state changes what is usual only where the number of states gets another digit.
    rank_all_ |= std::bit_width(states) != std::bit_width(states_after);
    moved_.insert(move.label);
  }

  void rank_anew() {
    if (worth_ == nullptr) return;
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
    return folding_.try_fold(red, blue, pulse_, within);
  }

  void merged(Id red, Id blue, std::int64_t score) {
    learn(move_of(blue, red), red, automaton.access.size());
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
    learn(move_of(blue, none), blue, automaton.access.size() + 1);
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
  const PrefixTree& tree_;
  FoldingTree folding_;
  const Worth* worth_;
  Apart apart_;
  Habits habits_;
  std::int64_t cost_of_moves_ = 0;
  std::set<Id> moved_;     // labels whose habits changed since blue states were ranked
  bool rank_all_ = false;
  std::map<Id, Blue> blue_;  // in shortlex order
  std::set<Id> in_doubt_;    // blue states that are new, or of which a score is stale
  std::set<Id> unwatched_;   // blue states with a score that the next merge makes stale
  std::set<std::pair<Rank, Id>> ranking_;  // blue states, the surest first
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

// Goes through the merges in the order in which they were made, and decides again without
// each of them: what is shorter to describe is kept. So on until a whole pass changes nothing.
Automaton rethink(const PrefixTree& tree, Pulse& pulse, std::size_t most_states) {
  const Worth worth(tree);
  auto best = std::make_unique<RedBlue>(tree, pulse, &worth);
  try {
    while (!best->done()) best->step(Order::telling);
  } catch (const TimeLimitReached&) {
    return completed(tree, best->automaton, best->settled());
  }
  std::int64_t shortest = best->description();
  std::int64_t attempts = best->automaton.attempts;
  Apart apart;
  std::int64_t budget = rethinking_budget;

  // Whether it is shorter without a merge; then that is the best.
  const auto shorter_without = [&](std::size_t at) {
    const std::span<const Event> events = best->automaton.events;
    Apart without = apart;
    without.insert({events[at].red, events[at].blue});
    auto other = std::make_unique<RedBlue>(tree, pulse, &worth, without);
    other->repeat(events.first(at));
    while (!other->done() && other->automaton.access.size() <= best->automaton.access.size() &&
           other->cost_of_moves() < shortest)
      other->step(Order::telling);
    attempts += other->automaton.attempts;
    const std::size_t anew = other->automaton.events.size() - at;
    budget -= tree.size() + static_cast<std::int64_t>(anew * other->automaton.access.size());
    if (!other->done() || other->description() >= shortest) return false;
    shortest = other->description();
    best = std::move(other);
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
  } catch (const TimeLimitReached&) {  // the best so far explains all, too
  } catch (const TooMuchWork&) {
  }
  if (best->automaton.access.size() > most_states) throw TooManyStates();
  best->automaton.attempts = attempts;
  return summary(tree, *best);
}

}  // namespace

Automaton merge_states(const PrefixTree& tree, Order order, Pulse& pulse, std::size_t most_states) {
  if (order == Order::rethink) return rethink(tree, pulse, most_states);
  const std::optional<Worth> worth = order == Order::telling ? std::optional<Worth>(tree) : std::nullopt;
  RedBlue red_blue(tree, pulse, worth ? &*worth : nullptr);
  try {
    while (!red_blue.done()) {
      red_blue.step(order);
      if (red_blue.automaton.access.size() > most_states) throw TooManyStates();
    }
  } catch (const TimeLimitReached&) {
    return completed(tree, red_blue.automaton, red_blue.settled());
  }
  return summary(tree, red_blue);
}

std::optional<Automaton> merge_states_within(const PrefixTree& tree, Pulse& pulse, std::size_t states,
                                             std::int64_t attempts) {
  RedBlue red_blue(tree, pulse);
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

Automaton merge_as(const PrefixTree& tree, std::span<const Id> state_of, Pulse& pulse) {
  RedBlue red_blue(tree, pulse);
  red_blue.run(state_of);
  return summary(tree, red_blue);
}

}  // namespace resolvent
