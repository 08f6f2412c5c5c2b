// Samples → prefix tree: one node per distinct label history, and the answers
// seen there. The histories are the same for every machine inferred from the
// same traces, so they are a tree of their own that machines share.
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// Nodes stand in shortlex order of their histories: by length, then label by
// label. So node 0 is the root, and the children of a node are neighbours, in
// label order: first_child[v] .. first_child[v + 1].
struct HistoryTree {
  std::vector<Id> parent;  // none for the root
  std::vector<Id> label;   // the label that leads here; none for the root
  std::vector<Id> first_child;
  std::vector<Row> visits;       // how often a trace came here
  std::vector<Id> node_of_row;
  std::vector<Row> offsets;  // trace i owns rows offsets[i] .. offsets[i + 1]

  [[nodiscard]] Id size() const { return static_cast<Id>(parent.size()); }
};

HistoryTree build_history_tree(const Labels& labels, Pulse& pulse);

struct Answer {
  Id alpha;
  Id output;
};

// The answers at node v, by ascending alpha: first_answer[v] .. first_answer[v + 1],
// and how often each was seen. Refers to its histories, which must outlive it.
struct PrefixTree {
  const HistoryTree& histories;
  std::vector<std::size_t> first_answer;
  std::vector<Answer> answers;
  std::vector<Row> counts;
  std::vector<Id> lead;  // the answer just before each node, or none if there is none or traces differ

  [[nodiscard]] Id size() const { return histories.size(); }
};

// Two rows with the same label history and the same alpha but different outputs.
// The first in shortlex order of the history, then by alpha, then by row.
struct Contradiction {
  Row first;
  Row second;
};

std::variant<PrefixTree, Contradiction> build_prefix_tree(const HistoryTree& histories, const Answers& answers);

}  // namespace resolvent
