// The part of a prefix tree that constrains machines: nodes with an output at or below them. In tables,
// `table[state * labels + label]` is the next state; state 0 is initial.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

// Parents precede their children; node 0 is the root. Node v has the outputs first_output[v] ..
// first_output[v + 1]. Alphas, and pairs of alpha and output, are numbered by first occurrence.
struct OutputTree {
  Id labels = 0;  // number of labels, whether they occur or not
  Id alphas = 0;
  Id outputs = 0;  // number of pairs of alpha and output
  std::vector<Id> parent;
  std::vector<Id> label;
  std::vector<std::size_t> first_output;
  std::vector<Id> alpha;
  std::vector<Id> output;

  [[nodiscard]] Id size() const { return static_cast<Id>(parent.size()); }
};

OutputTree output_tree(const PrefixTree& tree, Id labels);

// Return the machine with its states numbered by first visit; unvisited states are dropped, and unused
// transitions are `none`. Two tables are the same machine on this tree if and only if the results are
// equal.
std::vector<Id> canonical(const OutputTree& tree, std::span<const Id> table);

// Return the state of each node of a prefix tree under such a table. Transitions that no output depends on
// lead to the initial state.
std::vector<Id> states_under(const HistoryTree& histories, std::span<const Id> table, Id labels);

// The first row whose output differs from an earlier row of the same state and alpha, and that row.
struct Conflict {
  Row first;
  Row second;
};
std::optional<Conflict> first_conflict(std::span<const Id> table, Id labels, const Labels& read,
                                       const Outputs& outputs);

}  // namespace resolvent
