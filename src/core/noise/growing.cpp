#include "growing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "parallel.hpp"
#include "part_of_traces.hpp"
#include "random.hpp"
#include "table_replay.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

constexpr double nothing_yet = -std::numeric_limits<double>::infinity();

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

constexpr int rounds = 6;              // of growing, at most, unless two find the same before
constexpr double same_evidence = 1.0;  // so close is the same
constexpr int patience = 3;            // splits in a row without a better machine
constexpr double still_gains = 0.1;    // of the best split so far: then patience does not count
constexpr std::size_t settled = 40;    // candidates that are settled, and polished
constexpr std::size_t polished = 6;
constexpr std::int64_t tries = 1000;   // of annealing, for each state

// Noise is never quite as it is modelled, and what is off grows with the data. So a state must
// be worth this much, and this share of what all memory is worth.
constexpr double least_worth = 8.0;
constexpr double least_share = 0.002;

class Grower {
 public:
  Grower(const AnswerCells& cells, const Labels& labels, const GrowthOptions& options, Pulse& pulse, Growth& found)
      : cells_(cells), labels_(labels), options_(options), width_(static_cast<Id>(options.quiet.size())),
        beta_(labels.beta.begin(), labels.beta.end()), pulse_(pulse), found_(found) {
    for (Id& label : beta_)
      if (label != none && options.quiet[index(label)] != 0) label = none;
    histories_ = build_history_tree({beta_, labels.offsets}, pulse);
    noise_ = noise_of_repeats(cells, histories_);
  }

  // Grows machines until two rounds find the same.
  void run() {
    LikelyMachine best = consider(one_state());
    const auto most = std::max(2, static_cast<int>(std::lround(rounds * options_.effort)));
    for (int round = 0; round < most; ++round) {
      pulse_.progress.settled = round;
      pulse_.progress.nodes = most;
      Random random(options_.seed + static_cast<std::uint64_t>(round));
      const LikelyMachine grown = grow(manners[static_cast<std::size_t>(round) % manners.size()], random);
      const bool same = std::abs(grown.evidence.log_evidence - best.evidence.log_evidence) < same_evidence;
      if (round > 0 && grown.states == best.states && same) return;
      if (is_better(grown, best)) best = grown;
    }
  }

  // Goes on from a machine that was found elsewhere: single moves, and splits while they help.
  void go_on(const Moves& from) {
    const Manner& manner = manners[0];
    LikelyMachine best = consider(from);
    const AnswerCells telling = telling_answers(cells_, noise_, manner.deviations);
    if (telling.questions() == 0) return;
    const NoisyTree tree(histories_, telling, width_);
    const SearchScore score(telling, manner.noise);
    TableReplay replay(tree, score);
    replay.start(from, pulse_);
    replay.polish(pulse_);
    if (LikelyMachine machine = consider(replay.moves()); is_better(machine, best)) best = std::move(machine);
    while (best.states < options_.most_states) {
      const auto next = split(best.moves, replay, tree, score);
      if (!next) return;
      LikelyMachine machine = consider(*next);
      if (!is_better(machine, best)) return;
      best = std::move(machine);
    }
  }

  // Weighs a machine, and keeps it if it is the likeliest, or the likeliest of its size.
  LikelyMachine consider(const Moves& moves) {
    LikelyMachine machine;
    machine.moves = trimmed(moves);
    machine.states = static_cast<Id>(machine.moves.size()) / width_;
    machine.evidence = weigh_machine(cells_, labels_, machine.moves, machine.states, shape_);
    shape_ = machine.evidence.noise;
    const auto [place, fresh] = found_.by_size.try_emplace(machine.states, machine);
    if (!fresh && machine.evidence.log_evidence > place->second.evidence.log_evidence) place->second = machine;
    if (found_.best.moves.empty() || is_better(machine, found_.best)) {
      found_.best = machine;
      pulse_.progress.red = machine.states;
    }
    return machine;
  }

 private:
  [[nodiscard]] bool is_better(const LikelyMachine& one, const LikelyMachine& other) const {
    double most = one.evidence.log_evidence;
    for (const auto& [states, machine] : found_.by_size) most = std::max(most, machine.evidence.log_evidence);
    const double worth = least_worth + least_share * (most - found_.by_size.at(1).evidence.log_evidence);
    return one.evidence.log_evidence - other.evidence.log_evidence > worth * (one.states - other.states);
  }

  [[nodiscard]] Moves one_state() const { return Moves(index(width_), 0); }

  // The moves of the states that are reached, in the order in which they are; all others stay.
  [[nodiscard]] Moves trimmed(const Moves& moves) const {
    std::vector<Id> number(moves.size() / index(width_), none);
    std::vector<std::uint8_t> read(moves.size());
    std::vector<Id> state(histories_.parent.size());
    for (std::size_t node = 1; node < state.size(); ++node) {
      const auto move = index(state[index(histories_.parent[node])] * width_ + histories_.label[node]);
      read[move] = 1;
      state[node] = moves[move];
    }
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

  struct Candidate {
    Moves moves;
    Id one;    // the states to settle between, or −1
    Id other;
    double score = nothing_yet;
  };

  // Works on each candidate, several at a time.
  template <typename Work>
  void in_turn(std::vector<Candidate>& candidates, const NoisyTree& tree, const SearchScore& score, Work work) {
    const std::size_t parts = std::min<std::size_t>(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4),
                                                    candidates.size());
    in_parallel(parts, [&](std::size_t part) {
      Pulse silent(nullptr, 0);
      Pulse& pulse = part == 0 ? pulse_ : silent;
      TableReplay replay(tree, score);
      for (std::size_t at = part; at < candidates.size(); at += parts) {
        replay.start(candidates[at].moves, pulse);
        work(replay, candidates[at], pulse);
        candidates[at].score = replay.score();
        candidates[at].moves = replay.moves();
      }
    });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  }

  // Looks at all candidates, settles the most promising, polishes the best of those.
  void best_of(std::vector<Candidate> candidates, TableReplay& replay, const NoisyTree& tree, const SearchScore& score) {
    in_turn(candidates, tree, score, [](TableReplay&, const Candidate&, Pulse&) {});
    candidates.resize(std::min(candidates.size(), settled));
    in_turn(candidates, tree, score, [](TableReplay& one, const Candidate& candidate, Pulse& pulse) {
      if (candidate.one != none) one.settle(candidate.one, candidate.other, pulse);
    });
    candidates.resize(std::min(candidates.size(), polished));
    in_turn(candidates, tree, score, [](TableReplay& one, const Candidate&, Pulse& pulse) { one.polish(pulse); });
    replay.start(candidates.front().moves, pulse_);
  }

  // One state more: a state is split along a move that leads into it.
  std::optional<Moves> split(const Moves& moves, TableReplay& replay, const NoisyTree& tree, const SearchScore& score) {
    const auto states = static_cast<Id>(moves.size()) / width_;
    std::vector<std::int64_t> used(moves.size());
    replay.start(moves, pulse_);
    for (std::size_t node = 1; node < histories_.parent.size(); ++node)
      ++used[index(replay.state_of_node()[index(histories_.parent[node])] * width_ + histories_.label[node])];
    std::vector<Candidate> candidates;
    for (std::size_t move = 0; move < moves.size(); ++move) {
      if (used[move] < 2) continue;
      const Id target = moves[move];
      Moves split_moves = moves;
      for (Id label = 0; label < width_; ++label) {
        const Id to = moves[index(target * width_ + label)];
        split_moves.push_back(to == target ? states : to);
      }
      split_moves[move] = states;
      candidates.push_back({std::move(split_moves), target, states});
    }
    if (candidates.empty()) return std::nullopt;
    best_of(std::move(candidates), replay, tree, score);
    return replay.moves();
  }

  // One state less: what led to a state leads to another.
  Moves joined(const Moves& moves, TableReplay& replay, const NoisyTree& tree, const SearchScore& score) {
    const auto states = static_cast<Id>(moves.size()) / width_;
    std::vector<Candidate> candidates;
    for (Id kept = 0; kept < states; ++kept)
      for (Id gone = 1; gone < states; ++gone) {
        if (kept == gone) continue;
        Moves fewer;
        for (Id state = 0; state < states; ++state) {
          if (state == gone) continue;
          for (Id label = 0; label < width_; ++label) {
            Id to = moves[index(state * width_ + label)];
            if (to == gone) to = kept;
            fewer.push_back(to > gone ? to - 1 : to);
          }
        }
        candidates.push_back({std::move(fewer), none, none});
      }
    best_of(std::move(candidates), replay, tree, score);
    return replay.moves();
  }

  LikelyMachine grow(const Manner& manner, Random& random) {
    LikelyMachine best = consider(one_state());
    const AnswerCells telling = telling_answers(cells_, noise_, manner.deviations);
    if (telling.questions() == 0) return best;
    const NoisyTree tree(histories_, telling, width_);
    const SearchScore score(telling, manner.noise);
    TableReplay replay(tree, score);
    const auto better = [&](const Moves& moves) {
      LikelyMachine machine = consider(moves);
      if (!is_better(machine, best)) return false;
      best = std::move(machine);
      return true;
    };
    Moves now = one_state();
    replay.start(now, pulse_);
    double score_before = replay.score();
    double most_gained = 0.0;
    for (int fails = 0; static_cast<Id>(now.size()) / width_ < options_.most_states;) {
      auto next = split(now, replay, tree, score);
      if (!next) break;
      if (manner.heat > 0) {
        const double before = replay.score();
        replay.anneal(tries * replay.states(), manner.heat, random, pulse_);
        replay.polish(pulse_);
        if (replay.score() > before)
          next = replay.moves();
        else
          replay.start(*next, pulse_);
      }
      const double gained = replay.score() - score_before;
      score_before = replay.score();
      most_gained = std::max(most_gained, gained);
      bool up = better(*next);
      for (Moves fewer = trimmed(*next); static_cast<Id>(fewer.size()) / width_ > 1; fewer = best.moves) {
        if (!better(joined(fewer, replay, tree, score))) break;
        up = true;
      }
      fails = up ? 0 : fails + 1;
      now = std::move(*next);
      if ((fails >= patience && gained < still_gains * most_gained) || fails >= 3 * patience + 4) break;
    }
    return best;
  }

  const AnswerCells& cells_;
  Labels labels_;
  const GrowthOptions& options_;
  Id width_;
  std::vector<Id> beta_;  // without quiet labels
  HistoryTree histories_;
  double noise_ = 0.0;
  NoiseShape shape_;
  Pulse& pulse_;
  Growth& found_;
};

// What is known before anything was searched.
Growth one_state_only(const AnswerCells& cells, const Labels& labels, std::size_t width) {
  LikelyMachine machine{Moves(width, 0), 1, {}};
  machine.evidence = weigh_machine(cells, labels, machine.moves, 1, {});
  return {machine, {{1, machine}}, true};
}

}  // namespace

Growth grow_machine(const Answers& answers, const Labels& labels, const GrowthOptions& options,
                    Pulse::Listener listener, double time_limit) {
  Pulse pulse(std::move(listener), time_limit);
  const auto width = options.quiet.size();
  const bool has_quiet = std::any_of(options.quiet.begin(), options.quiet.end(), [](auto quiet) { return quiet != 0; });
  GrowthOptions all_read = options;
  all_read.quiet.assign(width, 0);

  const bool is_part = labels.offsets.back() > options.part;
  const TracePart part = is_part ? part_of_traces(answers, labels, options.part, options.seed) : TracePart{};
  const Labels some_labels = is_part ? part.labels() : labels;
  const AnswerCells some = number_answers(is_part ? part.answers() : answers);
  Growth found = one_state_only(some, some_labels, width);
  bool quiet_stays = true;
  try {
    Grower(some, some_labels, options, pulse, found).run();
    if (has_quiet) {
      const Moves before = found.best.moves;
      Grower(some, some_labels, all_read, pulse, found).go_on(before);
      quiet_stays = found.best.moves == before;
    }
  } catch (const TimeLimitReached&) {
    found.finished = false;
  }
  if (!is_part) return found;

  const AnswerCells all = number_answers(answers);
  Growth whole = one_state_only(all, labels, width);
  whole.finished = found.finished;
  try {
    Pulse unhurried(nullptr, 0);
    Grower grower(all, labels, quiet_stays ? options : all_read, found.finished ? pulse : unhurried, whole);
    for (const auto& [states, machine] : found.by_size) grower.consider(machine.moves);
    if (found.finished) grower.go_on(found.best.moves);
  } catch (const TimeLimitReached&) {
    whole.finished = false;
  }
  return whole;
}

}  // namespace resolvent
