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
#include "table_replay.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

constexpr double nothing_yet = -std::numeric_limits<double>::infinity();

// How one round of growing weighs answers: with so much noise, and without the answers that
// the noise of repeats explains by so many standard deviations.
struct Manner {
  NoiseShape noise;
  double deviations;
};
constexpr std::array manners{Manner{{50, 0.45}, 2}, Manner{{50, 0.6}, 3}, Manner{{50, 0.2}, 2}};

constexpr int patience = 3;           // splits in a row without a likelier machine
constexpr double still_gains = 0.1;   // of the best split so far: then patience does not count
constexpr double same_evidence = 1.0;  // two rounds that end so close have found the same

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

  void run() {
    consider(one_state());
    double before = nothing_yet;
    Id states_before = 0;
    for (const Manner& manner : manners) {
      const LikelyMachine grown = grow(manner);
      if (grown.states == states_before && std::abs(grown.evidence.log_evidence - before) < same_evidence) break;
      if (grown.evidence.log_evidence > before) {
        before = grown.evidence.log_evidence;
        states_before = grown.states;
      }
    }
  }

  // Improves the best machine by single moves, on all rows.
  void polish() {
    const AnswerCells telling = telling_answers(cells_, noise_, manners[0].deviations);
    if (telling.questions() == 0) return;
    const NoisyTree tree(histories_, telling, width_);
    const SearchScore score(telling, manners[0].noise);
    TableReplay replay(tree, score);
    replay.start(found_.best.moves, pulse_);
    replay.polish(pulse_);
    consider(replay.moves());
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
    if (found_.best.moves.empty() || machine.evidence.log_evidence > found_.best.evidence.log_evidence) {
      found_.best = machine;
      pulse_.progress.red = machine.states;
    }
    return machine;
  }

 private:
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

  // Settles each candidate as far as that helps, several at a time, and returns the best.
  Candidate best_of(std::vector<Candidate> candidates, const NoisyTree& tree, const SearchScore& score) {
    const std::size_t parts = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4);
    in_parallel(std::min(parts, candidates.size()), [&](std::size_t part) {
      Pulse silent(nullptr, 0);
      Pulse& pulse = part == 0 ? pulse_ : silent;
      TableReplay replay(tree, score);
      for (std::size_t at = part; at < candidates.size(); at += std::min(parts, candidates.size())) {
        Candidate& candidate = candidates[at];
        replay.start(candidate.moves, pulse);
        if (candidate.one != none) replay.settle(candidate.one, candidate.other, pulse);
        candidate.score = replay.score();
        candidate.moves = replay.moves();
      }
    });
    return *std::max_element(candidates.begin(), candidates.end(),
                             [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
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
    replay.start(best_of(std::move(candidates), tree, score).moves, pulse_);
    replay.polish(pulse_);
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
    replay.start(best_of(std::move(candidates), tree, score).moves, pulse_);
    replay.polish(pulse_);
    return replay.moves();
  }

  LikelyMachine grow(const Manner& manner) {
    LikelyMachine best = consider(one_state());
    const AnswerCells telling = telling_answers(cells_, noise_, manner.deviations);
    if (telling.questions() == 0) return best;
    const NoisyTree tree(histories_, telling, width_);
    const SearchScore score(telling, manner.noise);
    TableReplay replay(tree, score);
    const auto better = [&](const Moves& moves) {
      LikelyMachine machine = consider(moves);
      if (machine.evidence.log_evidence <= best.evidence.log_evidence) return false;
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

}  // namespace

Growth grow_machine(const Answers& answers, const Labels& labels, const GrowthOptions& options,
                    Pulse::Listener listener, double time_limit) {
  Growth found;
  Pulse pulse(std::move(listener), time_limit);
  const TracePart part = part_of_traces(answers, labels, options.part, options.seed);
  Growth on_part;
  const AnswerCells cells = number_answers(part.answers());
  try {
    Grower grower(cells, part.labels(), options, pulse, on_part);
    grower.run();
  } catch (const TimeLimitReached&) {
    on_part.finished = false;
  }
  return on_part;
}

}  // namespace resolvent
