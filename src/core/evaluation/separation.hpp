// Observed outputs of a machine → for each pair of states the shortest label sequence and the query that
// distinguish them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// One entry per state and query, sorted by query, then by state.
struct ObservedOutputs {
  std::span<const Id> query;
  std::span<const Id> state;
  std::span<const Id> output;
};

// `target[state * labels + label]` is the next state, or `none`.
struct TransitionTable {
  std::span<const Id> target;
  Id states;
  Id labels;
};

// Number of an unordered pair in the order (0, 1), (0, 2), … (1, 2), …
std::size_t pair_number(Id first, Id second, Id states);

// One entry per pair. `depth` is the length of a shortest distinguishing label sequence, `none` if the
// states are not distinguished; `label` is its first label. For the states at its end: `queries` counts the
// queries with different outputs, `support` their observations, and `lower` and `higher` are the entries of
// a witness, the one after the fewest steps, then of the lowest query.
struct Separations {
  std::vector<Id> depth;
  std::vector<Id> label;
  std::vector<Id> queries;
  std::vector<Row> support;
  std::vector<Id> lower;
  std::vector<Id> higher;
};

// `count` and `step` have the number of observations of each entry, and the step of the earliest.
Separations separate(const ObservedOutputs& observed, std::span<const Row> count, std::span<const Row> step,
                     const TransitionTable& table, Watch& watch);

}  // namespace resolvent
