#include "table_search.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "parallel.hpp"

namespace resolvent {
namespace {

constexpr std::size_t settled = 40;  // candidates that are settled
constexpr std::size_t polished = 6;  // and of those, how many are polished, after a split
constexpr std::size_t polished_joins = 2;
constexpr std::int64_t tries = 1000;  // of annealing, for each state

std::size_t threads(std::size_t candidates) {
  return std::min(candidates, std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4));
}

}  // namespace

TableSearch::TableSearch(const HistoryTree& histories, AnswerCells telling, Id labels, const NoiseShape& noise,
                         Pulse& pulse)
    : telling_(std::move(telling)), tree_(histories, telling_, labels), score_(telling_, noise),
      replay_(tree_, score_), pulse_(pulse) {}

// Works on each candidate, several at a time, and puts the best first. Each is read from the
// start, so the number of threads makes no difference.
template <typename Work>
void TableSearch::in_turn(std::vector<Candidate>& candidates, Work work) {
  const std::size_t parts = threads(candidates.size());
  in_parallel(parts, [&](std::size_t part) {
    Pulse silent(nullptr, 0);
    Pulse& pulse = part == 0 ? pulse_ : silent;
    TableReplay replay(tree_, score_);
    for (std::size_t at = part; at < candidates.size(); at += parts) {
      replay.start(candidates[at].moves, pulse);
      work(replay, candidates[at], pulse);
      candidates[at].score = replay.score();
      candidates[at].moves = replay.moves();
    }
  });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& one, const Candidate& other) { return one.score > other.score; });
}

// Looks at all candidates, settles those that promise most, and polishes the best of them.
void TableSearch::take_best(std::vector<Candidate> candidates, std::size_t most_polished) {
  in_turn(candidates, [](TableReplay&, const Candidate&, Pulse&) {});
  candidates.resize(std::min(candidates.size(), settled));
  if (candidates.front().one != none)
    in_turn(candidates, [](TableReplay& replay, const Candidate& candidate, Pulse& pulse) {
      replay.settle(candidate.one, candidate.other, pulse);
    });
  candidates.resize(std::min(candidates.size(), most_polished));
  in_turn(candidates, [](TableReplay& replay, const Candidate&, Pulse& pulse) { replay.polish(pulse); });
  start(candidates.front().moves);
}

bool TableSearch::split() {
  const Moves moves = replay_.moves();
  const Id labels = tree_.labels;
  const Id fresh = replay_.states();
  std::vector<std::int64_t> used(moves.size());
  const auto use = [&](const auto& times) {
    for (std::size_t node = 1; node < tree_.histories.parent.size(); ++node)
      used[index(replay_.state_of_node()[index(tree_.histories.parent[node])] * labels +
                 tree_.histories.label[node])] += times(node);
    return std::any_of(used.begin(), used.end(), [](std::int64_t count) { return count > 1; });
  };
  // Where each move is made by a single history, how many traces have that history counts.
  if (!use([](std::size_t) { return 1; })) use([&](std::size_t node) { return tree_.histories.visits[node]; });
  std::vector<Candidate> candidates;
  for (std::size_t move = 0; move < moves.size(); ++move) {
    if (used[move] < 2) continue;
    const Id target = moves[move];
    Moves more = moves;
    // The new state does as the old one; what stays in the old one stays in the new one.
    for (Id label = 0; label < labels; ++label) {
      const Id to = moves[index(target * labels + label)];
      more.push_back(to == target ? fresh : to);
    }
    more[move] = fresh;
    candidates.push_back({std::move(more), target, fresh});
  }
  if (candidates.empty()) return false;
  take_best(std::move(candidates), polished);
  return true;
}

void TableSearch::join() {
  const Moves moves = replay_.moves();
  const Id labels = tree_.labels;
  const Id states = replay_.states();
  std::vector<Candidate> candidates;
  for (Id kept = 0; kept < states; ++kept)
    for (Id gone = 1; gone < states; ++gone) {
      if (kept == gone) continue;
      Moves fewer;
      for (Id move = 0; move < states * labels; ++move) {
        if (move / labels == gone) continue;
        const Id to = moves[index(move)] == gone ? kept : moves[index(move)];
        fewer.push_back(to > gone ? to - 1 : to);
      }
      candidates.push_back({std::move(fewer)});
    }
  take_best(std::move(candidates), polished_joins);
}

void TableSearch::anneal(double heat, Random& random) {
  const Moves before = replay_.moves();
  const double score_before = replay_.score();
  replay_.anneal(tries * replay_.states(), heat, random, pulse_);
  replay_.polish(pulse_);
  if (replay_.score() <= score_before) start(before);
}

}  // namespace resolvent
