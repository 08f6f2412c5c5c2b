#include "table_search.hpp"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "parallel.hpp"

namespace resolvent {
namespace {

constexpr std::size_t settled = 40;  // candidates that are settled
constexpr std::size_t polished = 6;  // of those, how many are polished after a split
constexpr std::size_t polished_joins = 2;
constexpr std::int64_t tries = 1000;  // of annealing, per state

std::size_t threads(std::size_t candidates) {
  return std::min(candidates, std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 4));
}

}  // namespace

TableSearch::TableSearch(const HistoryTree& histories, OutputCells informative, Id labels, const NoiseShape& noise,
                         Watch& watch)
    : informative_(std::move(informative)),
      tree_(histories, informative_, labels),
      score_(informative_, noise),
      replay_(tree_, score_),
      watch_(watch) {}

// Work on each candidate, several in parallel, and sort the best to the front. Each is replayed from
// scratch, so that the number of threads does not matter.
template <typename Work>
void TableSearch::in_turn(std::vector<Candidate>& candidates, Work work) {
  const std::size_t parts = threads(candidates.size());
  in_parallel(parts, [&](std::size_t part) {
    Watch silent(nullptr, 0);
    Watch& watch = part == 0 ? watch_ : silent;
    TableReplay replay(tree_, score_);
    for (std::size_t at = part; at < candidates.size(); at += parts) {
      replay.start(candidates[at].transitions, watch);
      work(replay, candidates[at], watch);
      candidates[at].score = replay.score();
      candidates[at].transitions = replay.transitions();
    }
  });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& first, const Candidate& second) { return first.score > second.score; });
}

// Score all candidates, settle the best ones, and polish the best of those.
void TableSearch::take_best(std::vector<Candidate> candidates, std::size_t most_polished) {
  in_turn(candidates, [](TableReplay&, const Candidate&, Watch&) {});
  candidates.resize(std::min(candidates.size(), settled));
  if (candidates.front().first != none)
    in_turn(candidates, [](TableReplay& replay, const Candidate& candidate, Watch& watch) {
      replay.settle(candidate.first, candidate.second, watch);
    });
  candidates.resize(std::min(candidates.size(), most_polished));
  in_turn(candidates, [](TableReplay& replay, const Candidate&, Watch& watch) { replay.polish(watch); });
  start(candidates.front().transitions);
}

bool TableSearch::split() {
  const Transitions transitions = replay_.transitions();
  const Id labels = tree_.labels;
  const Id new_state = replay_.states();
  std::vector<std::int64_t> used(transitions.size());
  const auto use = [&](const auto& times) {
    for (std::size_t node = 1; node < tree_.histories.parent.size(); ++node)
      used[index(replay_.state_of_node()[index(tree_.histories.parent[node])] * labels +
                 tree_.histories.label[node])] += times(node);
    return std::any_of(used.begin(), used.end(), [](std::int64_t count) { return count > 1; });
  };
  // If each transition is used by a single label sequence, count its traces instead.
  if (!use([](std::size_t) { return 1; })) use([&](std::size_t node) { return tree_.histories.visits[node]; });
  std::vector<Candidate> candidates;
  for (std::size_t entry = 0; entry < transitions.size(); ++entry) {
    if (used[entry] < 2) continue;
    const Id target = transitions[entry];
    Transitions more = transitions;
    // The new state copies the old one; loops of the old state become loops of the new one.
    for (Id label = 0; label < labels; ++label) {
      const Id to = transitions[index(target * labels + label)];
      more.push_back(to == target ? new_state : to);
    }
    more[entry] = new_state;
    candidates.push_back({std::move(more), target, new_state});
  }
  if (candidates.empty()) return false;
  take_best(std::move(candidates), polished);
  return true;
}

void TableSearch::join() {
  const Transitions transitions = replay_.transitions();
  const Id labels = tree_.labels;
  const Id states = replay_.states();
  std::vector<Candidate> candidates;
  for (Id into = 0; into < states; ++into)
    for (Id removed = 1; removed < states; ++removed) {
      if (into == removed) continue;
      Transitions fewer;
      for (Id entry = 0; entry < states * labels; ++entry) {
        if (entry / labels == removed) continue;
        const Id to = transitions[index(entry)] == removed ? into : transitions[index(entry)];
        fewer.push_back(to > removed ? to - 1 : to);
      }
      candidates.push_back({std::move(fewer)});
    }
  take_best(std::move(candidates), polished_joins);
}

void TableSearch::anneal(double heat, Random& random) {
  const Transitions before = replay_.transitions();
  const double score_before = replay_.score();
  replay_.anneal(tries * replay_.states(), heat, random, watch_);
  replay_.polish(watch_);
  if (replay_.score() <= score_before) start(before);
}

}  // namespace resolvent
