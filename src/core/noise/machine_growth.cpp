#include "machine_growth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "noisy_samples.hpp"
#include "random.hpp"
#include "subsample.hpp"
#include "table_search.hpp"
#include "tree_merging.hpp"

namespace resolvent {
namespace {

// Settings of one round: the assumed noise; the number of standard deviations above the noise at which an
// output is informative; with heat, tables are annealed after each split.
struct Setting {
  NoiseShape noise;
  double deviations;
  double heat;
};
constexpr std::array settings{Setting{{50, 0.45}, 2, 0},  Setting{{50, 0.6}, 3, 0},  Setting{{50, 0.2}, 2, 0},
                              Setting{{50, 0.45}, 2, 10}, Setting{{50, 0.2}, 2, 10}, Setting{{50, 0.6}, 3, 10}};

// For memory that rarely matters: recurring outputs only, with little noise.
constexpr Setting recurring_only{{50, 0.1}, std::numeric_limits<double>::infinity(), 0};
constexpr std::array merged_shares{0.3, 0.1, 0.03};  // of noise, when merging the tree
constexpr std::int64_t most_work = 100;              // of merging, per node of the tree

constexpr int rounds = 5;              // maximum, unless two rounds agree before
constexpr double same_evidence = 1.0;  // smaller differences count as equal
constexpr int patience = 3;            // splits in a row without a better machine
constexpr int most_patience = 6;       // the same, whatever the splits gain
constexpr double still_gains = 0.1;    // of the best split so far; patience only counts below this
constexpr int losses = 3;              // splits in a row that each cost more than the penalty of a state

// Quiet labels seem to matter if there are this number of pairs of outputs after the same label sequences,
// quiet labels included, and this much more of them differ without quiet labels.
constexpr double least_repeats = 30.0;
constexpr double min_disagreement_ratio = 1.25;
constexpr double min_disagreement_excess = 0.02;

// Grows machines on some rows, and keeps the best in `result`, which starts with one.
class Grower {
 public:
  // `histories` are the label sequences of the rows, with or without quiet labels.
  Grower(const NoisySamples& rows, const HistoryTree& histories, const GrowthOptions& options, Watch& watch,
         Growth& result)
      : rows_(rows),
        histories_(histories),
        options_(options),
        width_(static_cast<Id>(options.quiet.size())),
        watch_(watch),
        result_(result),
        recurring_(recurring_outputs(rows.cells, histories)) {}

  // Merge the tree, then grow from one state until two rounds agree.
  void run() {
    ScoredMachine best = merge();
    const int most = std::max(2, static_cast<int>(std::lround(rounds * options_.effort)));
    for (int round = 0; round < most; ++round) {
      watch_.progress.settled = round;
      watch_.progress.nodes = most;
      Random random(options_.seed + static_cast<std::uint64_t>(round));
      const ScoredMachine grown = grow(settings[static_cast<std::size_t>(round) % settings.size()], random);
      const bool same = std::abs(grown.evidence.log_evidence - best.evidence.log_evidence) < same_evidence;
      if ((round > 0 || best.states > 1) && grown.states == best.states && same) return;
      if (is_better(grown, best)) best = grown;
    }
  }

  // Improve a machine by single transitions, joins and splits, first with all informative outputs, then
  // with the recurring ones.
  ScoredMachine refine(const Transitions& from) {
    return refine(refine(from, settings[0]).transitions, recurring_only);
  }

  // Score a machine, and keep it if it is the best overall or of its size.
  ScoredMachine consider(const Transitions& transitions) {
    ScoredMachine machine;
    machine.transitions = trimmed(transitions);
    machine.states = static_cast<Id>(machine.transitions.size()) / width_;
    // Fitting starts from the noise of the previous machine, which is usually close.
    machine.evidence = weigh_machine(rows_.cells, rows_.labels, machine.transitions, machine.states, shape_);
    shape_ = machine.evidence.noise;
    const auto [entry, inserted] = result_.by_size.try_emplace(machine.states, machine);
    if (!inserted && machine.evidence.log_evidence > entry->second.evidence.log_evidence) entry->second = machine;
    if (is_better(machine, result_.best)) {
      result_.best = machine;
      watch_.progress.red = machine.states;
    }
    return machine;
  }

 private:
  [[nodiscard]] bool is_better(const ScoredMachine& first, const ScoredMachine& second) const {
    const double gain = first.evidence.log_evidence - second.evidence.log_evidence;
    return gain > state_penalty(result_.by_size) * (first.states - second.states);
  }

  // Renumber the reached states in breadth-first order. A label that is never read is a loop.
  [[nodiscard]] Transitions trimmed(const Transitions& transitions) const {
    std::vector<std::uint8_t> read(transitions.size());
    std::vector<Id> state(histories_.parent.size());
    for (std::size_t node = 1; node < state.size(); ++node) {
      const auto entry = index(state[index(histories_.parent[node])] * width_ + histories_.label[node]);
      read[entry] = 1;
      state[node] = transitions[entry];
    }
    std::vector<Id> number(transitions.size() / index(width_), none);
    std::vector<Id> order{0};
    number[0] = 0;
    for (std::size_t at = 0; at < order.size(); ++at)
      for (Id label = 0; label < width_; ++label) {
        const auto entry = index(order[at] * width_ + label);
        if (read[entry] == 0 || number[index(transitions[entry])] != none) continue;
        number[index(transitions[entry])] = static_cast<Id>(order.size());
        order.push_back(transitions[entry]);
      }
    Transitions trimmed_transitions;
    for (std::size_t at = 0; at < order.size(); ++at)
      for (Id label = 0; label < width_; ++label) {
        const auto entry = index(order[at] * width_ + label);
        trimmed_transitions.push_back(read[entry] != 0 ? number[index(transitions[entry])] : static_cast<Id>(at));
      }
    return trimmed_transitions;
  }

  ScoredMachine refine(const Transitions& from, const Setting& setting) {
    ScoredMachine best = consider(from);
    auto search = searching(setting);
    if (!search) return best;
    const auto better = [&] {
      ScoredMachine machine = consider(search->transitions());
      if (!is_better(machine, best)) return false;
      best = std::move(machine);
      return true;
    };
    search->start(from);
    search->polish();
    better();
    do {
      search->start(best.transitions);
      if (best.states == 1) break;
      search->join();
    } while (better());
    do {
      search->start(best.transitions);
    } while (best.states < options_.most_states && search->split() && better());
    return best;
  }

  // Return the best result of merging the tree by recurring outputs.
  ScoredMachine merge() {
    ScoredMachine best = consider(Transitions(index(width_), 0));
    const OutputCells informative =
        informative_outputs(rows_.cells, recurring_, rows_.noise, recurring_only.deviations);
    if (informative.queries() == 0) return best;
    const NoisyTree tree(histories_, informative, width_);
    for (const double share : merged_shares) {
      TreeMerging merging(tree, {recurring_only.noise.strength, share}, watch_);
      const auto transitions = merging.run(options_.most_states, most_work * histories_.size());
      if (!transitions) continue;
      if (ScoredMachine machine = consider(*transitions); is_better(machine, best)) best = std::move(machine);
    }
    return best.states == 1 ? best : refine(best.transitions, recurring_only);
  }

  // Return nullopt if no output is informative.
  std::optional<TableSearch> searching(const Setting& setting) {
    OutputCells informative = informative_outputs(rows_.cells, recurring_, rows_.noise, setting.deviations);
    if (informative.queries() == 0) return std::nullopt;
    return std::optional<TableSearch>(std::in_place, histories_, std::move(informative), width_, setting.noise, watch_);
  }

  ScoredMachine grow(const Setting& setting, Random& random) {
    ScoredMachine best = consider(Transitions(index(width_), 0));
    auto search = searching(setting);
    if (!search) return best;
    double evidence = best.evidence.log_evidence;  // of the last machine
    const auto better = [&] {
      ScoredMachine machine = consider(search->transitions());
      evidence = machine.evidence.log_evidence;
      if (!is_better(machine, best)) return false;
      best = std::move(machine);
      return true;
    };
    search->start(best.transitions);
    double score_before = search->score();
    double most_gained = 0.0;
    double evidence_before = evidence;
    int lost = 0;
    for (int fails = 0; static_cast<Id>(search->transitions().size()) / width_ < options_.most_states;) {
      if (!search->split()) break;
      if (setting.heat > 0) search->anneal(setting.heat, random);
      const Transitions grown = search->transitions();
      const double gain = search->score() - score_before;
      score_before = search->score();
      most_gained = std::max(most_gained, gain);
      bool up = better();
      lost = evidence < evidence_before - state_penalty(result_.by_size) ? lost + 1 : 0;
      evidence_before = evidence;
      // Join states while that improves the machine.
      for (Transitions now = trimmed(grown); static_cast<Id>(now.size()) / width_ > 1; now = best.transitions) {
        search->start(now);
        search->join();
        if (!better()) break;
        up = true;
      }
      search->start(grown);
      fails = up ? 0 : fails + 1;
      if (fails >= losses && lost >= losses) break;
      if ((fails >= patience && gain < still_gains * most_gained) || fails >= most_patience) break;
    }
    return best;
  }

  const NoisySamples& rows_;
  const HistoryTree& histories_;
  const GrowthOptions& options_;
  Id width_;
  NoiseShape shape_;
  Watch& watch_;
  Growth& result_;
  std::vector<std::uint8_t> recurring_;
};

// The result before any search.
Growth one_state_only(const NoisySamples& rows, std::size_t width) {
  ScoredMachine machine{Transitions(width, 0), 1, {}};
  machine.evidence = weigh_machine(rows.cells, rows.labels, machine.transitions, 1, {});
  return {machine, {{1, machine}}, 0.0, true};
}

// Score results again with noise fitted from scratch: fitting that starts from another machine may end in a
// lower local maximum.
void weigh_afresh(const NoisySamples& rows, Growth& result) {
  const auto weigh = [&](ScoredMachine& machine) {
    MachineEvidence inserted = weigh_machine(rows.cells, rows.labels, machine.transitions, machine.states, {});
    if (inserted.log_evidence > machine.evidence.log_evidence) machine.evidence = std::move(inserted);
  };
  for (auto& [states, machine] : result.by_size) weigh(machine);
  weigh(result.best);
}

// Whether quiet labels seem to matter: outputs after the same label sequence agree more often with quiet
// labels than without.
bool quiet_labels_matter(const NoisySamples& rows, const HistoryTree& histories) {
  const Repeats with = count_repeats(rows.cells, histories);
  const Repeats without = count_repeats(rows.cells, rows.without_quiet);
  if (with.all() < least_repeats) return false;
  const double differ_with = 1.0 - with.agreed / with.all();
  const double differ_without = 1.0 - without.agreed / without.all();
  return differ_without > min_disagreement_ratio * differ_with + min_disagreement_excess;
}

// Grow a machine in which quiet labels are loops; if they seem to matter, improve it with them. Return
// whether they are loops.
bool grow_without_quiet(const NoisySamples& rows, const GrowthOptions& options, Watch& watch, Growth& result) {
  Grower(rows, rows.without_quiet, options, watch, result).run();
  const auto& quiet = options.quiet;
  if (std::find(quiet.begin(), quiet.end(), 1) == quiet.end()) return true;
  const HistoryTree histories = build_history_tree(rows.labels, watch);
  if (!quiet_labels_matter(rows, histories)) return true;
  const Transitions before = result.best.transitions;
  Grower(rows, histories, options, watch, result).refine(before);
  return result.best.transitions == before;
}

}  // namespace

double state_penalty(const std::map<Id, ScoredMachine>& by_size) {
  const double one_state = by_size.at(1).evidence.log_evidence;
  double most = one_state;
  for (const auto& [states, machine] : by_size) most = std::max(most, machine.evidence.log_evidence);
  return min_gain_of_state + min_share_of_gain * (most - one_state);
}

Growth grow_machine(const Outputs& outputs, const Labels& labels, const GrowthOptions& options,
                    Watch::Listener listener, double time_limit) {
  Watch watch(std::move(listener), time_limit);
  // Scoring results is short, and done even after the time limit.
  Watch unlimited(nullptr, 0);
  const bool is_part = labels.offsets.back() > options.part;
  const Subsample part = is_part ? subsample_traces(outputs, labels, options.part, options.seed) : Subsample{};
  const NoisySamples some(is_part ? part.outputs() : outputs, is_part ? part.labels() : labels, options.quiet,
                          unlimited);
  Growth result = one_state_only(some, options.quiet.size());
  bool quiet_stays = true;
  try {
    quiet_stays = grow_without_quiet(some, options, watch, result);
  } catch (const TimeLimitReached&) {
    result.finished = false;
  }
  if (!is_part) {
    weigh_afresh(some, result);
    result.noise = deviating_share(some.cells, labels, result.best.transitions, result.best.states);
    return result;
  }

  const NoisySamples all(outputs, labels, options.quiet, unlimited);
  const HistoryTree histories = quiet_stays ? HistoryTree{} : build_history_tree(labels, unlimited);
  Growth whole = one_state_only(all, options.quiet.size());
  whole.finished = result.finished;
  try {
    Grower grower(all, quiet_stays ? all.without_quiet : histories, options, watch, whole);
    for (const auto& [states, machine] : result.by_size) grower.consider(machine.transitions);
    if (result.finished) grower.refine(result.best.transitions);
  } catch (const TimeLimitReached&) {
    whole.finished = false;
  }
  weigh_afresh(all, whole);
  whole.noise = deviating_share(all.cells, labels, whole.best.transitions, whole.best.states);
  return whole;
}

}  // namespace resolvent
