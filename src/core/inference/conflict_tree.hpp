// The part of a prefix tree whose outputs can conflict, laid out for replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// Transition table during a search: the target of (state, label) is at state * labels + label. State 0 is
// initial.
using Targets = std::vector<Id>;

// The labels of a tree, numbered consecutively in their order.
class LabelCodes {
 public:
  explicit LabelCodes(const HistoryTree& histories);

  [[nodiscard]] Id size() const { return static_cast<Id>(labels_.size()); }
  [[nodiscard]] Id of(Id label) const;

 private:
  std::vector<Id> labels_;
};

// Nodes are in preorder, so that a chain of labels is contiguous. Alphas with a single output are left out,
// and nodes without outputs at or below them.
struct ConflictTree {
  struct Node {
    Id label;  // by LabelCodes; none for the root
    std::uint32_t first_child;
    std::uint32_t first_seen;
  };
  struct Output {
    Id alpha;   // numbered consecutively
    Id output;  // numbered consecutively over all alphas, so that it determines the alpha
  };
  struct Edge {
    Id parent;
    Id child;
  };

  std::vector<Node> nodes;   // and one past the end
  std::vector<Id> children;  // of node v: from first_child of v to first_child of v + 1
  std::vector<Output> seen;
  std::vector<std::vector<Edge>> edges;  // by label; ascending
  Id alphas = 0;
  Id outputs = 0;

  [[nodiscard]] std::size_t size() const { return nodes.size() - 1; }
};

// Of all label sequences, or of whole ones drawn with `seed` that have about `at_most` nodes together;
// longer ones are truncated.
ConflictTree make_conflict_tree(const PrefixTree& tree, const LabelCodes& labels, std::size_t at_most,
                                std::uint64_t seed, Watch& watch);

}  // namespace resolvent
