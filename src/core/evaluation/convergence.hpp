// Prefix tree + observed outputs of a machine → the number of label sequences after which the outputs at
// and below them are consistent with one state only.
#pragma once

#include <span>

#include "prefix_tree.hpp"
#include "samples.hpp"
#include "separation.hpp"
#include "watch.hpp"

namespace resolvent {

// Counts over the label sequences that lead to a known state. `node`, `state` and `other` describe the
// first sequence that does not converge, with the lowest other state that is consistent with it; `none` if
// all converge.
struct Convergence {
  Row histories = 0;
  Row converging = 0;
  Id node = none;
  Id state = none;
  Id other = none;
};

// Row i has `query[i]` and `output[i]`; a query of `none` is skipped. Queries are below `queries`. Labels
// that are not in `table` have no target. Memory: one bit per state for each node of two consecutive
// depths, and for each observed pair of query and output.
Convergence converge(const HistoryTree& tree, std::span<const Id> query, std::span<const Id> output,
                     const ObservedOutputs& observed, Id queries, const TransitionTable& table, Watch& watch);

}  // namespace resolvent
