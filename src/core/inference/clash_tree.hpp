// What a table of transitions is judged by: the part of a prefix tree whose
// answers can conflict, laid out for replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// A machine's transitions while it is searched for: where (state, label) leads,
// at state * labels + label. It starts in state 0.
using Targets = std::vector<Id>;

// The labels of a tree, numbered without gaps in their order.
class LabelCodes {
 public:
  explicit LabelCodes(const HistoryTree& histories);

  [[nodiscard]] Id size() const { return static_cast<Id>(labels_.size()); }
  [[nodiscard]] Id of(Id label) const;

 private:
  std::vector<Id> labels_;
};

// Nodes stand in preorder, so that a chain of labels is a run of neighbours.
// Left out are alphas that had one output only, and nodes without an answer at
// or below them.
struct ClashTree {
  struct Node {
    Id label;  // by LabelCodes; none for the root
    std::uint32_t first_child;
    std::uint32_t first_answer;
  };
  struct Answer {
    Id alpha;   // numbered without gaps
    Id output;  // numbered without gaps over all alphas: it tells the alpha too
  };
  struct Edge {
    Id parent;
    Id child;
  };

  std::vector<Node> nodes;   // and one past the end
  std::vector<Id> children;  // of node v: first_child of v .. first_child of v + 1
  std::vector<Answer> answers;
  std::vector<std::vector<Edge>> edges;  // by label; ascending
  Id alphas = 0;
  Id outputs = 0;

  [[nodiscard]] std::size_t size() const { return nodes.size() - 1; }
};

// Of all histories, or of as many whole ones, drawn by `seed`, as have about
// `at_most` nodes between them; none of them longer than that.
ClashTree make_clash_tree(const PrefixTree& tree, const LabelCodes& labels, std::size_t at_most, std::uint64_t seed,
                          Pulse& pulse);

}  // namespace resolvent
