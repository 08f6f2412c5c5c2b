// Prefix tree + a machine's answers as the traces show them → for how many label
// histories the evidence at and below them leaves only one state open.
#pragma once

#include <span>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"
#include "separation.hpp"

namespace resolvent {

// Of the histories that lead to a known state: how many there are, how many leave
// no other state open; of the first that does, its node, its state and the lowest
// other state that it leaves open, all `none` where there is none such.
struct Convergence {
  Row histories = 0;
  Row converging = 0;
  Id node = none;
  Id state = none;
  Id other = none;
};

// Rows answer `query` with `output`, or nothing where the query is `none`;
// queries are below `queries`. Labels of the tree that `leads` does not have
// lead nowhere. Needs a bit for each state at the nodes of two depths at a time,
// and for each state at each pair of query and output shown.
Convergence converge(const HistoryTree& tree, std::span<const Id> query, std::span<const Id> output,
                     const Shown& shown, Id queries, const Leads& leads, Pulse& pulse);

}  // namespace resolvent
