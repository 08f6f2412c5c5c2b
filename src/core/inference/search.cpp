#include "search.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "arithmetic.hpp"
#include "conflict_tree.hpp"
#include "lower_bound.hpp"
#include "random.hpp"
#include "table_annealing.hpp"

namespace resolvent {
namespace {

// Parameters were chosen by measurement; see docs/decisions/inference.md.

// Each size is searched with increasing effort: multiples of what a machine of this size should take.
constexpr double first_effort = 0.5;
constexpr double effort_growth = 4;
constexpr double last_effort = 8;

// Share of the remaining budget for a size that exceeds it.
constexpr double share_of_hard_size = 0.125;

// A part of the tree is used if machines of the size are easy to find in it.
constexpr std::size_t least_nodes = 2048;
constexpr double easy = 3;

// Larger machines from merging are not used as a start.
constexpr std::size_t begun_with_at_most = 32;

// If evidence is scarce, as in one long log, merging finds thousands of states and takes ever longer.
// Beyond these numbers of states and folds it is postponed, and the search runs first with a part of the
// budget.
constexpr std::size_t many_states = 128;
constexpr std::int64_t many_folds = 1'000'000;
constexpr std::int64_t part_before_merging = 4;

// A machine is practically certain if the agreement of its outputs exceeds the information in its table by
// this factor; then only this part of the budget is spent on improving it.
constexpr double certain = 16;
constexpr std::int64_t part_for_certain = 16;

// Table size limit, about 400 MB.
constexpr std::size_t most_entries = 100'000'000;

// Difficulty above which evidence is scarce.
constexpr double hard = 8;

// Parameters of the search for machines of one size.
struct Setting {
  ConflictTree tree;
  std::size_t nodes;  // approximate number of nodes the tree was drawn from
  double nats;        // disagreement of random tables per nat of table information
  bool hard;
  double moves;            // expected number
  double visits_per_move;  // measured so far
};

// Annealing finds a machine when its temperature passes a point that rises with the disagreement of random
// tables, and falls with the information in a table. The time this takes depends on their ratio.
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
  Search(const PrefixTree& tree, const SearchOptions& options, Id best, Watch& watch)
      : tree_(tree),
        labels_(tree.histories),
        whole_(make_conflict_tree(tree, labels_, index(tree.size()), 0, watch)),
        options_(options),
        budget_(options.budget),
        watch_(watch),
        best_(best) {}

  // Search for smaller machines.
  void run() {
    const Id least = std::max(fewest_states(tree_, watch_), Id{2});
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
        if (too_hard) break;  // larger sizes are even harder
      }
    }
  }

  // The same with a part of the budget.
  void run_part(std::int64_t part) {
    budget_ = options_.budget / part;
    run();
    if (!best_table) budget_ = options_.budget;
  }

  // Continue below the size of a known machine.
  void run_below(Id best) {
    best_ = best;
    run();
  }

  // Start from a known machine.
  void begin(const Automaton& known) {
    if (known.access.size() > begun_with_at_most || !fits_memory(best_)) return;
    Targets table(known.access.size() * index(labels_.size()), 0);
    for (const Transition& transition : known.transitions)
      table[index(transition.state * labels_.size() + labels_.of(transition.label))] = transition.target;
    keep(best_, table);
  }

  // The smallest table found.
  std::optional<Targets> best_table;
  std::int64_t moves = 0;

  // Return the state of each node under a table.
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

  // Give smaller sizes twice the effort that the best one took, the next smaller first: a machine that is
  // smaller still would also be found at that size.
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

  // Search effort for a size relative to the expected one.
  double effort(Id size) { return static_cast<double>(moves_at_[size]) / setting(size).moves; }

  // Anneal once, on a part of the tree that grows until it represents the whole tree. Return whether that
  // finds a machine.
  bool try_size(Id size, double moves_wanted) {
    Random random(options_.seed ^ Random(index(size) << 32 | static_cast<std::size_t>(++runs_)).next());
    std::optional<Targets> table;
    for (;;) {
      Setting& setting_of_size = setting(size);
      TableAnnealing annealing(setting_of_size.tree, size, labels_.size());
      if (table)
        annealing.start(*table);
      else
        annealing.start(random);
      report_progress(size);
      const auto tried = annealing.anneal(static_cast<std::int64_t>(moves_wanted) + 1,
                                          cooling(setting_of_size, table.has_value()), random, watch_);
      note(size, tried, annealing.visits());
      if (annealing.disagreement() > 0) return false;
      table = annealing.table();
      if (keep(size, *table)) return true;
      settings_.insert_or_assign(size, make_setting(size, 2 * setting_of_size.nodes));
    }
  }

  // If evidence is scarce, time is best spent near the known freezing temperature; every fourth run covers
  // the full range.
  [[nodiscard]] Cooling cooling(const Setting& setting_of_size, bool again) const {
    if (again) return {0.2 * setting_of_size.nats, std::nullopt};
    if (setting_of_size.hard && runs_ % 4 != 0) return {0.62 * setting_of_size.nats, 0.42 * setting_of_size.nats};
    return {0.65 * setting_of_size.nats, std::nullopt};
  }

  // Keep a table if it explains the whole tree.
  bool keep(Id size, const Targets& table) {
    TableAnnealing annealing(whole_, size, labels_.size());
    annealing.start(numbered(table));
    if (annealing.disagreement() == 0) {
      annealing.settle(watch_);
      while (merge_two_states(annealing, size)) continue;
      annealing.settle(watch_);
    }
    spent_ += annealing.visits();
    if (annealing.disagreement() > 0) return false;
    best_table = annealing.table();
    const std::vector<Id> used = numbers(*best_table);
    best_ = static_cast<Id>(std::ranges::count_if(used, [](Id number) { return number != none; }));
    effort_of_best_ = effort(size);
    if (annealing.agreement() > certain * nats_to_find(best_, labels_.size()))
      budget_ = std::min(budget_, spent_ + options_.budget / part_for_certain);
    return true;
  }

  // Merge two states that can be one, with the transitions of either; return false, with nothing changed,
  // if there are none.
  bool merge_two_states(TableAnnealing& annealing, Id size) {
    const Targets before = annealing.table();
    const std::vector<Id> used = numbers(before);
    const auto row = [&](Targets& table, Id state) { return table.begin() + state * labels_.size(); };
    for (Id from = 1; from < size; ++from)
      for (Id into = 0; into < from; ++into)
        for (const bool rows_of_from : {false, true}) {
          if (used[index(from)] == none || used[index(into)] == none) continue;
          watch_.tick();
          Targets merged = before;
          if (rows_of_from) std::copy_n(row(merged, from), labels_.size(), row(merged, into));
          std::ranges::replace(merged, from, into);
          annealing.start(std::move(merged));
          if (annealing.disagreement() > 0) continue;
          annealing.start(
              numbered(annealing.table()));  // unused states last, so that ties are not resolved in their favor
          return true;
        }
    annealing.start(before);
    return false;
  }

  // Number the states by first visit; none if unvisited.
  [[nodiscard]] std::vector<Id> numbers(const Targets& table) const {
    std::vector<Id> number(table.size() / index(labels_.size()), none);
    Id next = 0;
    for (const Id state : states(table))
      if (number[index(state)] == none) number[index(state)] = next++;
    return number;
  }

  // Renumber the states of a table in this way, unvisited ones last.
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
      Setting setting_of_size{make_conflict_tree(tree_, labels_, nodes, options_.seed, watch_), nodes, 0, false, 0, 0};
      const double wrong = what_random_tables_get_wrong(setting_of_size.tree, size);
      if (nodes < index(tree_.size()) && difficulty(size, labels_.size(), wrong) > easy) continue;
      setting_of_size.nats = wrong / nats_to_find(size, labels_.size());
      setting_of_size.hard = difficulty(size, labels_.size(), wrong) > hard;
      setting_of_size.moves = moves_for(size, labels_.size(), wrong);
      setting_of_size.visits_per_move = static_cast<double>(setting_of_size.tree.size()) / labels_.size() + 1;
      return setting_of_size;
    }
  }

  // In nats, on average; at least 1, to avoid division by zero.
  double what_random_tables_get_wrong(const ConflictTree& tree, Id size) {
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

  // Report the best size, the size being searched, and the share of the budget used.
  void report_progress(Id size) {
    watch_.progress.red = best_;
    watch_.progress.blue = size;
    const double part = static_cast<double>(spent_) / static_cast<double>(std::max<std::int64_t>(options_.budget, 1));
    watch_.progress.settled = static_cast<std::int64_t>(std::min(part, 1.0) * tree_.size());
  }

  const PrefixTree& tree_;
  LabelCodes labels_;
  ConflictTree whole_;
  SearchOptions options_;
  std::int64_t budget_;  // total to be spent
  Watch& watch_;
  Id best_;
  double effort_of_best_ = 0;
  std::map<Id, Setting> settings_;
  std::map<Id, std::int64_t> moves_at_;
  std::int64_t spent_ = 0;
  std::int64_t runs_ = 0;
};

}  // namespace

Automaton search_states(const PrefixTree& tree, const SearchOptions& options, Watch& watch) {
  std::optional<Automaton> merged;
  if (!options.known.empty()) {
    Watch unlimited(nullptr, 0);
    merged = merge_as(tree, options.known, unlimited);
  }
  if (options.merges || !merged) {
    auto best_table = options.budget > 0 || merged ? merge_states_within(tree, watch, many_states, many_folds)
                                                   : merge_states(tree, Order::edsm, watch);
    if (best_table && (!merged || (best_table->finished && best_table->access.size() < merged->access.size())))
      merged = std::move(best_table);
  }
  // If two states are needed at all, no search gets below two.
  if (merged && (merged->access.size() <= 2 || !merged->finished)) return *std::move(merged);
  std::optional<Search> search;
  try {
    search.emplace(tree, options, static_cast<Id>(merged ? merged->access.size() : many_states + 1), watch);
    if (merged) {
      if (options.budget > 0) search->begin(*merged);
      search->run();
    } else {
      search->run_part(part_before_merging);
      if (!search->best_table) {
        merged = merge_states(tree, Order::edsm, watch);
        if (merged->finished) search->run_below(static_cast<Id>(merged->access.size()));
      }
    }
  } catch (const TimeLimitReached&) {
    // Keep what was found; otherwise merging completes what it can at once.
    if (!merged && !(search && search->best_table)) merged = merge_states(tree, Order::edsm, watch);
  }
  if (!search) return *std::move(merged);
  const std::int64_t attempts = (merged ? merged->attempts : many_folds) + search->moves;
  if (search->best_table) {
    Watch unlimited(nullptr, 0);
    merged = merge_as(tree, search->states(*search->best_table), unlimited);
  }
  merged->attempts = attempts;
  return *std::move(merged);
}

}  // namespace resolvent
