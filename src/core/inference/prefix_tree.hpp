// Samples → prefix tree: one node per distinct label sequence, with its outputs. The label sequences are
// the same for all machines inferred from the same traces, so machines share their tree.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// Nodes are in shortlex order of their label sequences. So node 0 is the root, and the children of a node
// are contiguous, in label order: first_child[v] .. first_child[v + 1].
struct HistoryTree {
  std::vector<Id> parent;  // none for the root
  std::vector<Id> label;   // last label of the sequence; none for the root
  std::vector<Id> first_child;
  std::vector<Row> visits;  // number of visits by traces
  std::vector<Id> node_of_row;
  std::vector<Row> offsets;  // trace i owns rows offsets[i] .. offsets[i + 1]

  [[nodiscard]] Id size() const { return static_cast<Id>(parent.size()); }
};

HistoryTree build_history_tree(const Labels& labels, Watch& watch);

struct Output {
  Id alpha;
  Id output;
};

// Outputs of node v by ascending alpha, first_output[v] .. first_output[v + 1], with their counts.
// `histories` must outlive it.
struct PrefixTree {
  const HistoryTree& histories;
  std::vector<std::size_t> first_output;
  std::vector<Output> outputs;
  std::vector<Row> counts;
  std::vector<Id> last_output;  // output just before each node; none if there is none or traces differ

  [[nodiscard]] Id size() const { return histories.size(); }
};

// Two rows with the same label sequence and alpha but different outputs: the first in shortlex order, then
// by alpha, then by row.
struct Contradiction {
  Row first;
  Row second;
};

std::variant<PrefixTree, Contradiction> build_prefix_tree(const HistoryTree& histories, const Outputs& outputs);

}  // namespace resolvent
