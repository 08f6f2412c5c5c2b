#include "search.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "clash_tree.hpp"
#include "elementary.hpp"
#include "lower_bound.hpp"
#include "random.hpp"
#include "table_annealing.hpp"

namespace resolvent {
namespace {

// All measured; docs/decisions/inference.md tells how.

// A size is searched for in ever longer annealings: this part and these many
// times of what a machine of its size should take.
constexpr double first_effort = 0.5;
constexpr double effort_growth = 4;
constexpr double last_effort = 8;

// A size that is too hard for the budget gets this part of what is left of it.
constexpr double share_of_hard_size = 0.125;

// A part of the tree will do when machines of the size are found easily in it.
constexpr std::size_t least_nodes = 2048;
constexpr double easy = 3;

// A larger machine than this is not looked at when merging finds it.
constexpr std::size_t begun_with_at_most = 32;

// Where evidence is scarce, as in one long log, merging finds thousands of states and
// takes ever longer. So it is put off once it has found so many by so many folds; a
// part of the budget is spent on the search first.
constexpr std::size_t many_states = 128;
constexpr std::int64_t many_folds = 1'000'000;
constexpr std::int64_t part_before_merging = 4;

// A machine is as good as certain when its answers agree so many times more than
// there was to find out; only this part of the budget is spent to better it.
constexpr double certain = 16;
constexpr std::int64_t part_for_certain = 16;

// How large tables may get: 400 MB or so.
constexpr std::size_t most_entries = 100'000'000;

// Above this, evidence is scarce.
constexpr double hard = 8;

// How machines of one size are searched for.
struct Setting {
  ClashTree tree;
  std::size_t nodes;  // about how many it was gathered from
  double nats;        // what random tables get wrong, for each nat to find
  bool hard;
  double moves;            // what it should take
  double visits_per_move;  // as seen so far
};

// Annealing finds a machine when its temperature passes a point that rises with
// what random tables get wrong, and falls with what there is to find out about a
// table. How long that takes depends on how much the one outweighs the other.
double nats_to_find(Id states, Id labels) { return static_cast<double>(states) * labels * natural_log(states); }

double difficulty(Id states, Id labels, double wrong) {
  const double nats = nats_to_find(states, labels);
  return nats * nats / wrong;
}

double moves_for(Id states, Id labels, double wrong) {
  const double changes = static_cast<double>(states) * states * labels;
  const double passes = 60 * exponential(std::clamp(difficulty(states, labels, wrong) / 2 - 3, 0.0, 12.0));
  const double tables = exponential(std::min(nats_to_find(states, labels), 40.0));
  return changes * std::min(passes, 4 * tables);
}

class Search {
 public:
  Search(const PrefixTree& tree, const SearchOptions& options, Id best, Pulse& pulse)
      : tree_(tree),
        labels_(tree.histories),
        whole_(make_clash_tree(tree, labels_, index(tree.size()), 0, pulse)),
        options_(options),
        budget_(options.budget),
        pulse_(pulse),
        best_(best) {}

  // Looks for ever smaller machines.
  void run() {
    const Id least = std::max(fewest_states(tree_, pulse_), Id{2});
    bool tried = true;
    for (double round = first_effort; tried; round = std::min(round * effort_growth, last_effort)) {
      tried = false;
      for (Id size = least; size < best_; ++size) {
        if (!fits_memory(size)) return;
        if (effort(size) >= last_effort) continue;
        if (spent_ > budget_ - budget_ / 64) return;
        tried = true;
        const double wanted = round * setting(size).moves;
        const double affordable = moves_left(size);
        const bool too_hard = wanted > affordable;
        if (try_size(size, too_hard ? affordable * share_of_hard_size : wanted)) return confirm(least);
        if (too_hard) break;  // larger ones are harder still
      }
    }
  }

  // The same with only a part of the budget.
  void run_part(std::int64_t part) {
    budget_ = options_.budget / part;
    run();
    if (!found) budget_ = options_.budget;
  }

  // Goes on below the size of a machine that came to be known.
  void run_below(Id best) {
    best_ = best;
    run();
  }

  // Begins with a machine that is known.
  void begin(const Automaton& known) {
    if (known.access.size() > begun_with_at_most || !fits_memory(best_)) return;
    Targets table(known.access.size() * index(labels_.size()), 0);
    for (const Transition& move : known.transitions)
      table[index(move.state * labels_.size() + labels_.of(move.label))] = move.target;
    keep(best_, table);
  }

  // The smallest table found, if there is any.
  std::optional<Targets> found;
  std::int64_t moves = 0;

  // The state that a table leads each node of the tree to.
  [[nodiscard]] std::vector<Id> states(const Targets& table) const {
    const HistoryTree& histories = tree_.histories;
    std::vector<Id> state(index(tree_.size()), 0);
    for (std::size_t node = 1; node < state.size(); ++node) {
      const Id from = state[index(histories.parent[node])];  // parents come first
      state[node] = table[index(from * labels_.size() + labels_.of(histories.label[node]))];
    }
    return state;
  }

 private:
  [[nodiscard]] bool fits_memory(Id size) const {
    return index(size) * (index(labels_.size()) + index(whole_.outputs)) <= most_entries;
  }

  // Gives smaller sizes twice the effort that the one found took, the next one
  // first: were there a smaller machine yet, it would do for that size too.
  void confirm(Id least) {
    for (Id size = best_ - 1; size >= least;) {
      const double enough = 2 * std::max(effort_of_best_, 1.0);
      if (effort(size) >= enough) {
        --size;
        continue;
      }
      const double wanted = (enough - effort(size)) * setting(size).moves;
      const double affordable = moves_left(size);
      if (affordable < 1) return;
      if (try_size(size, std::min(wanted, affordable))) size = best_ - 1;
    }
  }

  // How much longer a size was searched for than it should take.
  double effort(Id size) { return static_cast<double>(moves_at_[size]) / setting(size).moves; }

  // Anneals once, over a part of the tree that grows as long as it does not stand
  // for the whole. True when that finds a machine.
  bool try_size(Id size, double moves_wanted) {
    Random random(options_.seed ^ Random(index(size) << 32 | static_cast<std::size_t>(++runs_)).next());
    std::optional<Targets> table;
    for (;;) {
      Setting& how = setting(size);
      TableAnnealing annealing(how.tree, size, labels_.size());
      if (table)
        annealing.start(*table);
      else
        annealing.start(random);
      tell(size);
      const auto tried =
          annealing.anneal(static_cast<std::int64_t>(moves_wanted) + 1, cooling(how, table.has_value()), random, pulse_);
      note(size, tried, annealing.visits());
      if (annealing.disagreement() > 0) return false;
      table = annealing.table();
      if (keep(size, *table)) return true;
      settings_.insert_or_assign(size, make_setting(size, 2 * how.nodes));
    }
  }

  // Where there is little evidence, the time is best spent where annealing is about
  // to freeze, which is known; but now and then it is tried otherwise.
  [[nodiscard]] Cooling cooling(const Setting& how, bool again) const {
    if (again) return {0.2 * how.nats, std::nullopt};
    if (how.hard && runs_ % 4 != 0) return {0.62 * how.nats, 0.42 * how.nats};
    return {0.65 * how.nats, std::nullopt};
  }

  // Keeps a table if it explains the whole tree.
  bool keep(Id size, const Targets& table) {
    TableAnnealing annealing(whole_, size, labels_.size());
    annealing.start(numbered(table));
    if (annealing.disagreement() == 0) {
      annealing.settle(pulse_);
      while (merge_two_states(annealing, size)) continue;
      annealing.settle(pulse_);
    }
    spent_ += annealing.visits();
    if (annealing.disagreement() > 0) return false;
    found = annealing.table();
    const std::vector<Id> used = numbers(*found);
    best_ = static_cast<Id>(std::ranges::count_if(used, [](Id number) { return number != none; }));
    effort_of_best_ = effort(size);
    if (annealing.agreement() > certain * nats_to_find(best_, labels_.size()))
      budget_ = std::min(budget_, spent_ + options_.budget / part_for_certain);
    return true;
  }

  // Finds two states that can be one, with the transitions of either; false, and
  // nothing changed, where there are none.
  bool merge_two_states(TableAnnealing& annealing, Id size) {
    const Targets before = annealing.table();
    const std::vector<Id> used = numbers(before);
    const auto row = [&](Targets& table, Id state) { return table.begin() + state * labels_.size(); };
    for (Id from = 1; from < size; ++from)
      for (Id into = 0; into < from; ++into)
        for (const bool rows_of_from : {false, true}) {
          if (used[index(from)] == none || used[index(into)] == none) continue;
          pulse_.beat();
          Targets merged = before;
          if (rows_of_from) std::copy_n(row(merged, from), labels_.size(), row(merged, into));
          std::ranges::replace(merged, from, into);
          annealing.start(std::move(merged));
          if (annealing.disagreement() > 0) continue;
          annealing.start(numbered(annealing.table()));  // unused states last, where none is taken for a tie
          return true;
        }
    annealing.start(before);
    return false;
  }

  // The states numbered as the tree's nodes first lead to them; none where none does.
  [[nodiscard]] std::vector<Id> numbers(const Targets& table) const {
    std::vector<Id> number(table.size() / index(labels_.size()), none);
    Id next = 0;
    for (const Id state : states(table))
      if (number[index(state)] == none) number[index(state)] = next++;
    return number;
  }

  // The same table with its states numbered so, and those that are not used last.
  [[nodiscard]] Targets numbered(const Targets& table) const {
    std::vector<Id> number = numbers(table);
    Id next = static_cast<Id>(std::ranges::count_if(number, [](Id at) { return at != none; }));
    for (Id& at : number)
      if (at == none) at = next++;
    Targets renumbered(table.size());
    for (std::size_t at = 0; at < table.size(); ++at) {
      const std::size_t label = at % index(labels_.size());
      const Id state = number[at / index(labels_.size())];
      renumbered[index(state) * index(labels_.size()) + label] = number[index(table[at])];
    }
    return renumbered;
  }

  Setting& setting(Id size) {
    const auto known = settings_.find(size);
    if (known != settings_.end()) return known->second;
    return settings_.emplace(size, make_setting(size, least_nodes)).first->second;
  }

  Setting make_setting(Id size, std::size_t nodes) {
    for (;; nodes *= 2) {
      Setting how{make_clash_tree(tree_, labels_, nodes, options_.seed, pulse_), nodes, 0, false, 0, 0};
      const double wrong = what_random_tables_get_wrong(how.tree, size);
      if (nodes < index(tree_.size()) && difficulty(size, labels_.size(), wrong) > easy) continue;
      how.nats = wrong / nats_to_find(size, labels_.size());
      how.hard = difficulty(size, labels_.size(), wrong) > hard;
      how.moves = moves_for(size, labels_.size(), wrong);
      how.visits_per_move = static_cast<double>(how.tree.size()) / labels_.size() + 1;
      return how;
    }
  }

  // In nats, on average; at least 1, so that it can be divided by.
  double what_random_tables_get_wrong(const ClashTree& tree, Id size) {
    constexpr int tables = 8;
    Random random(options_.seed);
    TableAnnealing annealing(tree, size, labels_.size());
    double sum = 0;
    for (int table = 0; table < tables; ++table) {
      annealing.start(random);
      sum += static_cast<double>(annealing.disagreement()) / 1000;
    }
    spent_ += annealing.visits();
    return std::max(sum / tables, 1.0);
  }

  [[nodiscard]] double moves_left(Id size) {
    return static_cast<double>(budget_ - spent_) / setting(size).visits_per_move;
  }

  void note(Id size, std::int64_t tried, std::int64_t visits) {
    moves += tried;
    moves_at_[size] += tried;
    spent_ += visits;
    if (tried > 0) setting(size).visits_per_move = static_cast<double>(visits) / static_cast<double>(tried);
  }

  // Progress: the best size so far, the size that is tried, the part of the budget used.
  void tell(Id size) {
    pulse_.progress.red = best_;
    pulse_.progress.blue = size;
    const double part = static_cast<double>(spent_) / static_cast<double>(std::max<std::int64_t>(options_.budget, 1));
    pulse_.progress.settled = static_cast<std::int64_t>(std::min(part, 1.0) * tree_.size());
  }

  const PrefixTree& tree_;
  LabelCodes labels_;
  ClashTree whole_;
  SearchOptions options_;
  std::int64_t budget_;  // what is to be spent in all
  Pulse& pulse_;
  Id best_;
  double effort_of_best_ = 0;
  std::map<Id, Setting> settings_;
  std::map<Id, std::int64_t> moves_at_;
  std::int64_t spent_ = 0;
  std::int64_t runs_ = 0;
};

}  // namespace

Automaton search_states(const PrefixTree& tree, const SearchOptions& options, Pulse& pulse) {
  std::optional<Automaton> merged;
  if (!options.known.empty()) {
    Pulse unlimited(nullptr, 0);
    merged = merge_as(tree, options.known, unlimited);
  }
  if (options.merges || !merged) {
    auto found = options.budget > 0 || merged ? merge_states_within(tree, pulse, many_states, many_folds)
                                              : merge_states(tree, Order::edsm, pulse);
    if (found && (!merged || (found->finished && found->access.size() < merged->access.size())))
      merged = std::move(found);
  }
  // Where two states are needed at all, no search gets below two.
  if (merged && (merged->access.size() <= 2 || !merged->finished)) return *std::move(merged);
  std::optional<Search> search;
  try {
    search.emplace(tree, options, static_cast<Id>(merged ? merged->access.size() : many_states + 1), pulse);
    if (merged) {
      if (options.budget > 0) search->begin(*merged);
      search->run();
    } else {
      search->run_part(part_before_merging);
      if (!search->found) {
        merged = merge_states(tree, Order::edsm, pulse);
        if (merged->finished) search->run_below(static_cast<Id>(merged->access.size()));
      }
    }
  } catch (const TimeLimitReached&) {
    // What was found so far stands; where nothing was, merging completes what it can at once.
    if (!merged && !(search && search->found)) merged = merge_states(tree, Order::edsm, pulse);
  }
  if (!search) return *std::move(merged);
  const std::int64_t attempts = (merged ? merged->attempts : many_folds) + search->moves;
  if (search->found) {
    Pulse unlimited(nullptr, 0);
    merged = merge_as(tree, search->states(*search->found), unlimited);
  }
  merged->attempts = attempts;
  return *std::move(merged);
}

}  // namespace resolvent
