#include "trivial.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>

#include "arithmetic.hpp"
#include "pair_map.hpp"

namespace resolvent {
namespace {

// Conflicts of nontrivial labels usually appear near the root, so this number of nodes is checked first.
constexpr std::size_t top = 4096;

// Number the nodes of the tree without a label, for the first nodes.
std::vector<Id> nodes_without(const HistoryTree& tree, Id label, std::size_t first_nodes) {
  std::vector<Id> new_node(first_nodes, 0);
  PairMap children(new_node.size());
  Id nodes = 1;
  for (Id node = 1; index(node) < new_node.size(); ++node) {
    const Id above = new_node[index(tree.parent[index(node)])];
    if (tree.label[index(node)] == label) {
      new_node[index(node)] = above;
      continue;
    }
    Id& child = children.at(above, tree.label[index(node)]);
    if (child == none) child = nodes++;
    new_node[index(node)] = child;
  }
  return new_node;
}

// Information content of outputs in bits: the rarer an output for its alpha, the higher; 0 if the alpha has
// a single output.
class Information {
 public:
  explicit Information(const PrefixTree& tree) {
    for (const Output& output : tree.outputs) {
      if (index(output.alpha) >= count_of_alpha_.size()) count_of_alpha_.resize(index(output.alpha) + 1, 0);
      ++count_of_alpha_[index(output.alpha)];
      Id& count = count_of_output_.at(output.alpha, output.output);
      count = count == none ? 1 : count + 1;
    }
  }

  [[nodiscard]] double bits(Output output) const {
    return binary_log(static_cast<double>(count_of_alpha_[index(output.alpha)]) /
                      static_cast<double>(count_of_output_.find(output.alpha, output.output)));
  }

 private:
  std::vector<Id> count_of_alpha_;
  PairMap count_of_output_;
};

struct NodeOutput {
  Output output;
  Id node;
};

Row first_row(const HistoryTree& tree, const Outputs& outputs, const NodeOutput& seen) {
  for (std::size_t row = 0; row < outputs.alpha.size(); ++row)
    if (tree.node_of_row[row] == seen.node && outputs.alpha[row] == seen.output.alpha) return static_cast<Row>(row);
  throw std::logic_error("the row of an output is missing");
}

// Considers the first `nodes` only; parents precede their children.
Deletion delete_label(const PrefixTree& tree, std::size_t nodes, const Outputs& outputs, const Information& information,
                      Id label, Id labels) {
  const HistoryTree& histories = tree.histories;
  const std::vector<Id> new_node = nodes_without(histories, label, nodes);

  // By node: the last label other than the deleted one, and its value at the last deletion.
  std::vector<Id> last(nodes, none);
  std::vector<Id> deleted_after(nodes, none);
  Deletion deletion;
  deletion.bits.resize(index(labels) + 1, 0.0);
  deletion.occurrences.resize(index(labels) + 1, 0);
  for (std::size_t node = 1; node < nodes; ++node) {
    const std::size_t above = index(histories.parent[node]);
    const bool deleted = histories.label[node] == label;
    last[node] = deleted ? last[above] : histories.label[node];
    deleted_after[node] = deleted ? last[above] + 1 : deleted_after[above];
    if (deleted) ++deletion.occurrences[index(last[above] + 1)];
  }

  // Nodes grouped by their merged node, in shortlex order within a group.
  std::vector<std::size_t> start(nodes + 1, 0);
  for (const Id node : new_node) ++start[index(node) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Id> grouped(nodes);
  {
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t node = 0; node < nodes; ++node) grouped[next[index(new_node[node])]++] = static_cast<Id>(node);
  }

  std::vector<NodeOutput> seen;
  for (std::size_t group = 0; group < nodes; ++group) {
    if (start[group + 1] - start[group] < 2) continue;
    seen.clear();
    for (std::size_t at = start[group]; at < start[group + 1]; ++at) {
      const Id node = grouped[at];
      for (std::size_t output = tree.first_output[index(node)]; output < tree.first_output[index(node) + 1]; ++output)
        seen.push_back({tree.outputs[output], node});
    }
    std::ranges::stable_sort(seen, {}, [](const NodeOutput& node_output) { return node_output.output.alpha; });
    for (std::size_t first = 0, next = 0; first < seen.size(); first = next) {
      while (next < seen.size() && seen[next].output.alpha == seen[first].output.alpha) {
        if (seen[next].output.output != seen[first].output.output)
          return {0,
                  {},
                  {},
                  Contradiction{first_row(histories, outputs, seen[first]), first_row(histories, outputs, seen[next])}};
        ++next;
      }
      const double bits = next - first < 2 ? 0.0 : information.bits(seen[first].output);
      if (bits == 0.0) continue;
      deletion.agreements += static_cast<Row>(next - first) - 1;
      for (std::size_t at = first; at < next; ++at)
        if (const Id context = deleted_after[index(seen[at].node)]; context != none)
          deletion.bits[index(context)] += bits;
    }
  }
  return deletion;
}

}  // namespace

std::vector<Deletion> delete_labels(const PrefixTree& tree, const Outputs& outputs, std::span<const Id> named,
                                    Id labels) {
  const Information information(tree);
  std::vector<Deletion> deletions;
  const std::size_t nodes = index(tree.size());
  for (const Id label : named) {
    deletions.push_back(delete_label(tree, std::min(nodes, top), outputs, information, label, labels));
    if (nodes > top && !deletions.back().contradiction)
      deletions.back() = delete_label(tree, nodes, outputs, information, label, labels);
  }
  return deletions;
}

}  // namespace resolvent
