#include "growing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "noisy_rows.hpp"
#include "part_of_traces.hpp"
#include "random.hpp"
#include "table_search.hpp"
#include "tree_merging.hpp"

namespace resolvent {
namespace {

// How one round of growing weighs answers: with so much noise, and without the answers that
// the noise of repeats explains by so many standard deviations. With heat, tables are also
// annealed after each split.
struct Manner {
  NoiseShape noise;
  double deviations;
  double heat;
};
constexpr std::array manners{Manner{{50, 0.45}, 2, 0},  Manner{{50, 0.6}, 3, 0},  Manner{{50, 0.2}, 2, 0},
                             Manner{{50, 0.45}, 2, 10}, Manner{{50, 0.2}, 2, 10}, Manner{{50, 0.6}, 3, 10}};

// For memory that rarely matters: only answers that return, and little noise among them.
constexpr Manner returning_only{{50, 0.1}, std::numeric_limits<double>::infinity(), 0};
constexpr std::array merged_shares{0.3, 0.1, 0.03};  // of noise, while the tree is merged
constexpr std::int64_t most_work = 100;              // of merging, for each node of the tree

constexpr int rounds = 5;              // of growing, at most, unless two find the same before
constexpr double same_evidence = 1.0;  // so close is the same
constexpr int patience = 3;            // splits in a row without a better machine
constexpr int most_patience = 6;      // and whatever they gain
constexpr double still_gains = 0.1;    // of the best split so far: then patience does not count
constexpr int losses = 3;              // splits in a row that each cost more than a state must be worth

// Noise is never quite as it is modelled, and what is off grows with the data. So a state must
// be worth this much, and this share of what all memory is worth.
constexpr double least_worth = 8.0;
constexpr double least_share = 0.002;

// When quiet labels seem to change something: from so many pairs of answers on that were given
// after the same labels, quiet ones included, and if so much more of them differ without.
constexpr double least_repeats = 30.0;
constexpr double telling_factor = 1.25;
constexpr double telling_more = 0.02;

// Grows machines on some rows, and keeps the best that it meets in `found`, which has one already.
class Grower {
 public:
  // `histories` are those of the rows, with or without quiet labels.
  Grower(const NoisyRows& rows, const HistoryTree& histories, const GrowthOptions& options, Pulse& pulse,
         Growth& found)
      : rows_(rows), histories_(histories), options_(options), width_(static_cast<Id>(options.quiet.size())),
        pulse_(pulse), found_(found), returning_(returning_answers(rows.cells, histories)) {}

  // Merges the tree, and then grows from one state, until two rounds find the same.
  void run() {
    LikelyMachine best = merge();
    const int most = std::max(2, static_cast<int>(std::lround(rounds * options_.effort)));
    for (int round = 0; round < most; ++round) {
      pulse_.progress.settled = round;
      pulse_.progress.nodes = most;
      Random random(options_.seed + static_cast<std::uint64_t>(round));
      const LikelyMachine grown = grow(manners[static_cast<std::size_t>(round) % manners.size()], random);
      const bool same = std::abs(grown.evidence.log_evidence - best.evidence.log_evidence) < same_evidence;
      if ((round > 0 || best.states > 1) && grown.states == best.states && same) return;
      if (is_better(grown, best)) best = grown;
    }
  }

  // Goes on from a machine that was found elsewhere: single moves, one state less, and splits
  // while they help. First with all answers that may tell, then with those that return.
  LikelyMachine go_on(const Moves& from) { return go_on(go_on(from, manners[0]).moves, returning_only); }

  // Weighs a machine, and keeps it if it is the best, or the likeliest of its size.
  LikelyMachine consider(const Moves& moves) {
    LikelyMachine machine;
    machine.moves = trimmed(moves);
    machine.states = static_cast<Id>(machine.moves.size()) / width_;
    // Noise is fitted from where it was for the machine before, which is mostly near.
    machine.evidence = weigh_machine(rows_.cells, rows_.labels, machine.moves, machine.states, shape_);
    shape_ = machine.evidence.noise;
    const auto [place, fresh] = found_.by_size.try_emplace(machine.states, machine);
    if (!fresh && machine.evidence.log_evidence > place->second.evidence.log_evidence) place->second = machine;
    if (is_better(machine, found_.best)) {
      found_.best = machine;
      pulse_.progress.red = machine.states;
    }
    return machine;
  }

 private:
  [[nodiscard]] bool is_better(const LikelyMachine& one, const LikelyMachine& other) const {
    const double gained = one.evidence.log_evidence - other.evidence.log_evidence;
    return gained > price_of_state(found_.by_size) * (one.states - other.states);
  }

  // The moves of the states that are reached, in the order in which labels first lead to them.
  // Where a label is never read it stays.
  [[nodiscard]] Moves trimmed(const Moves& moves) const {
    std::vector<std::uint8_t> read(moves.size());
    std::vector<Id> state(histories_.parent.size());
    for (std::size_t node = 1; node < state.size(); ++node) {
      const auto move = index(state[index(histories_.parent[node])] * width_ + histories_.label[node]);
      read[move] = 1;
      state[node] = moves[move];
    }
    std::vector<Id> number(moves.size() / index(width_), none);
    std::vector<Id> order{0};
    number[0] = 0;
    for (std::size_t at = 0; at < order.size(); ++at)
      for (Id label = 0; label < width_; ++label) {
        const auto move = index(order[at] * width_ + label);
        if (read[move] == 0 || number[index(moves[move])] != none) continue;
        number[index(moves[move])] = static_cast<Id>(order.size());
        order.push_back(moves[move]);
      }
    Moves kept;
    for (std::size_t at = 0; at < order.size(); ++at)
      for (Id label = 0; label < width_; ++label) {
        const auto move = index(order[at] * width_ + label);
        kept.push_back(read[move] != 0 ? number[index(moves[move])] : static_cast<Id>(at));
      }
    return kept;
  }

  LikelyMachine go_on(const Moves& from, const Manner& manner) {
    LikelyMachine best = consider(from);
    auto search = searching(manner);
    if (!search) return best;
    const auto better = [&] {
      LikelyMachine machine = consider(search->moves());
      if (!is_better(machine, best)) return false;
      best = std::move(machine);
      return true;
    };
    search->start(from);
    search->polish();
    better();
    do {
      search->start(best.moves);
      if (best.states == 1) break;
      search->join();
    } while (better());
    do {
      search->start(best.moves);
    } while (best.states < options_.most_states && search->split() && better());
    return best;
  }

  // The best of the machines that merging the tree gives, by the answers that return.
  LikelyMachine merge() {
    LikelyMachine best = consider(Moves(index(width_), 0));
    const AnswerCells telling = telling_answers(rows_.cells, returning_, rows_.noise, returning_only.deviations);
    if (telling.queries() == 0) return best;
    const NoisyTree tree(histories_, telling, width_);
    for (const double share : merged_shares) {
      TreeMerging merging(tree, {returning_only.noise.strength, share}, pulse_);
      const auto moves = merging.run(options_.most_states, most_work * histories_.size());
      if (!moves) continue;
      if (LikelyMachine machine = consider(*moves); is_better(machine, best)) best = std::move(machine);
    }
    return best.states == 1 ? best : go_on(best.moves, returning_only);
  }

  // Nothing if no answer tells anything.
  std::optional<TableSearch> searching(const Manner& manner) {
    AnswerCells telling = telling_answers(rows_.cells, returning_, rows_.noise, manner.deviations);
    if (telling.queries() == 0) return std::nullopt;
    return std::optional<TableSearch>(std::in_place, histories_, std::move(telling), width_, manner.noise, pulse_);
  }

  LikelyMachine grow(const Manner& manner, Random& random) {
    LikelyMachine best = consider(Moves(index(width_), 0));
    auto search = searching(manner);
    if (!search) return best;
    double evidence = best.evidence.log_evidence;  // of the machine considered last
    const auto better = [&] {
      LikelyMachine machine = consider(search->moves());
      evidence = machine.evidence.log_evidence;
      if (!is_better(machine, best)) return false;
      best = std::move(machine);
      return true;
    };
    search->start(best.moves);
    double score_before = search->score();
    double most_gained = 0.0;
    double evidence_before = evidence;
    int lost = 0;
    for (int fails = 0; static_cast<Id>(search->moves().size()) / width_ < options_.most_states;) {
      if (!search->split()) break;
      if (manner.heat > 0) search->anneal(manner.heat, random);
      const Moves grown = search->moves();
      const double gained = search->score() - score_before;
      score_before = search->score();
      most_gained = std::max(most_gained, gained);
      bool up = better();
      lost = evidence < evidence_before - price_of_state(found_.by_size) ? lost + 1 : 0;
      evidence_before = evidence;
      // Merged back for as long as that is better.
      for (Moves now = trimmed(grown); static_cast<Id>(now.size()) / width_ > 1; now = best.moves) {
        search->start(now);
        search->join();
        if (!better()) break;
        up = true;
      }
      search->start(grown);
      fails = up ? 0 : fails + 1;
      if (fails >= losses && lost >= losses) break;
      if ((fails >= patience && gained < still_gains * most_gained) || fails >= most_patience) break;
    }
    return best;
  }

  const NoisyRows& rows_;
  const HistoryTree& histories_;
  const GrowthOptions& options_;
  Id width_;
  NoiseShape shape_;
  Pulse& pulse_;
  Growth& found_;
  std::vector<std::uint8_t> returning_;
};

// What is known before anything was searched.
Growth one_state_only(const NoisyRows& rows, std::size_t width) {
  LikelyMachine machine{Moves(width, 0), 1, {}};
  machine.evidence = weigh_machine(rows.cells, rows.labels, machine.moves, 1, {});
  return {machine, {{1, machine}}, 0.0, true};
}

// Weighs again what was found, with noise fitted from afresh: on the way it is fitted from where it
// was for the machine before, which may lead to another, lower top.
void weigh_afresh(const NoisyRows& rows, Growth& found) {
  const auto weigh = [&](LikelyMachine& machine) {
    MachineEvidence fresh = weigh_machine(rows.cells, rows.labels, machine.moves, machine.states, {});
    if (fresh.log_evidence > machine.evidence.log_evidence) machine.evidence = std::move(fresh);
  };
  for (auto& [states, machine] : found.by_size) weigh(machine);
  weigh(found.best);
}

// Whether quiet labels seem to change something: answers after the same labels agree more often
// if quiet ones count than if they do not.
bool quiet_labels_tell(const NoisyRows& rows, const HistoryTree& histories) {
  const Repeats with = count_repeats(rows.cells, histories);
  const Repeats without = count_repeats(rows.cells, rows.loud);
  if (with.all() < least_repeats) return false;
  const double differ_with = 1.0 - with.agreed / with.all();
  const double differ_without = 1.0 - without.agreed / without.all();
  return differ_without > telling_factor * differ_with + telling_more;
}

// Grows a machine whose quiet labels change nothing, and where they seem to, goes on from there.
// Returns whether they change nothing.
bool grow_quietly(const NoisyRows& rows, const GrowthOptions& options, Pulse& pulse, Growth& found) {
  Grower(rows, rows.loud, options, pulse, found).run();
  const auto& quiet = options.quiet;
  if (std::find(quiet.begin(), quiet.end(), 1) == quiet.end()) return true;
  const HistoryTree histories = build_history_tree(rows.labels, pulse);
  if (!quiet_labels_tell(rows, histories)) return true;
  const Moves before = found.best.moves;
  Grower(rows, histories, options, pulse, found).go_on(before);
  return found.best.moves == before;
}

}  // namespace

double price_of_state(const std::map<Id, LikelyMachine>& by_size) {
  const double one_state = by_size.at(1).evidence.log_evidence;
  double most = one_state;
  for (const auto& [states, machine] : by_size) most = std::max(most, machine.evidence.log_evidence);
  return least_worth + least_share * (most - one_state);
}

Growth grow_machine(const Answers& answers, const Labels& labels, const GrowthOptions& options,
                    Pulse::Listener listener, double time_limit) {
  Pulse pulse(std::move(listener), time_limit);
  // Weighing what was found takes a moment, even if time is over.
  Pulse unhurried(nullptr, 0);
  const bool is_part = labels.offsets.back() > options.part;
  const TracePart part = is_part ? part_of_traces(answers, labels, options.part, options.seed) : TracePart{};
  const NoisyRows some(is_part ? part.answers() : answers, is_part ? part.labels() : labels, options.quiet, unhurried);
  Growth found = one_state_only(some, options.quiet.size());
  bool quiet_stays = true;
  try {
    quiet_stays = grow_quietly(some, options, pulse, found);
  } catch (const TimeLimitReached&) {
    found.finished = false;
  }
  if (!is_part) {
    weigh_afresh(some, found);
    found.noise = share_off_main(some.cells, labels, found.best.moves, found.best.states);
    return found;
  }

  const NoisyRows all(answers, labels, options.quiet, unhurried);
  const HistoryTree histories = quiet_stays ? HistoryTree{} : build_history_tree(labels, unhurried);
  Growth whole = one_state_only(all, options.quiet.size());
  whole.finished = found.finished;
  try {
    Grower grower(all, quiet_stays ? all.loud : histories, options, pulse, whole);
    for (const auto& [states, machine] : found.by_size) grower.consider(machine.moves);
    if (found.finished) grower.go_on(found.best.moves);
  } catch (const TimeLimitReached&) {
    whole.finished = false;
  }
  weigh_afresh(all, whole);
  whole.noise = share_off_main(all.cells, labels, whole.best.moves, whole.best.states);
  return whole;
}

}  // namespace resolvent
