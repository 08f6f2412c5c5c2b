#include "prefix_tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "pair_map.hpp"

namespace resolvent {
namespace {

// A tree with nodes numbered by first visit. Most traces diverge early, so most nodes directly follow their
// parents and have one child: children are a linked list, and only nodes with many get a hash table.
class Sketch {
 public:
  struct Node {
    Id parent;
    Id label;
    Id first_child = none;
    Id next_sibling = none;
    Id children = 0;
    Row visits = 0;
  };

  std::vector<Node> nodes{{none, none}};

  [[nodiscard]] Id child(Id node, Id label) const {
    if (nodes[index(node)].children > listed_at_most) return crowded_.find(node, label);
    Id child = nodes[index(node)].first_child;
    while (child != none && nodes[index(child)].label != label) child = nodes[index(child)].next_sibling;
    return child;
  }

  Id add(Id node, Id label) {
    if (nodes.size() == index(std::numeric_limits<Id>::max()))
      throw std::length_error("the prefix tree has more than 2^31 nodes");
    const auto child = static_cast<Id>(nodes.size());
    nodes.push_back({node, label});
    nodes.back().next_sibling = nodes[index(node)].first_child;
    nodes[index(node)].first_child = child;
    if (++nodes[index(node)].children == listed_at_most + 1) {
      for (Id each = child; each != none; each = nodes[index(each)].next_sibling)
        crowded_.at(node, nodes[index(each)].label) = each;
    } else if (nodes[index(node)].children > listed_at_most) {
      crowded_.at(node, label) = child;
    }
    return child;
  }

 private:
  static constexpr Id listed_at_most = 8;

  PairMap crowded_;
};

// Grow the sketch; return the node of each row.
std::vector<Id> grow(const Labels& labels, Sketch& sketch, Watch& watch) {
  std::vector<Id> node_of_row(labels.beta.size());
  for (std::size_t trace = 0; trace + 1 < labels.offsets.size(); ++trace) {
    Id node = 0;
    ++sketch.nodes[0].visits;
    const auto end = static_cast<std::size_t>(labels.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(labels.offsets[trace]); row < end; ++row) {
      if (const Id label = labels.beta[row]; label != none) {
        watch.tick();
        const Id child = sketch.child(node, label);
        node = child != none ? child : sketch.add(node, label);
        ++sketch.nodes[index(node)].visits;
      }
      node_of_row[row] = node;
    }
  }
  return node_of_row;
}

// Return the first row with `alpha` at a node, and the first one after it with another output.
Contradiction find_rows(const HistoryTree& histories, const Outputs& outputs, Id node, Id alpha) {
  std::optional<std::size_t> first;
  for (std::size_t row = 0; row < outputs.alpha.size(); ++row) {
    if (histories.node_of_row[row] != node || outputs.alpha[row] != alpha) continue;
    if (!first)
      first = row;
    else if (outputs.output[row] != outputs.output[*first])
      return {static_cast<Row>(*first), static_cast<Row>(row)};
  }
  throw std::logic_error("the rows of a contradiction are gone");
}

// Return the output of the row before each node, where all traces agree on it.
std::vector<Id> last_outputs(const HistoryTree& histories, const Outputs& outputs) {
  constexpr Id not_met = -2;
  std::vector<Id> last_output(histories.parent.size(), not_met);
  for (std::size_t trace = 0; trace + 1 < histories.offsets.size(); ++trace) {
    Id node = 0;
    Id last = none;
    const auto end = static_cast<std::size_t>(histories.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(histories.offsets[trace]); row < end; ++row) {
      if (histories.node_of_row[row] != node) {
        node = histories.node_of_row[row];
        Id& known = last_output[index(node)];
        known = known == not_met || known == last ? last : none;
      }
      last = outputs.alpha[row] == none ? none : outputs.output[row];
    }
  }
  std::ranges::replace(last_output, not_met, none);
  return last_output;
}

}  // namespace

HistoryTree build_history_tree(const Labels& labels, Watch& watch) {
  Sketch sketch;
  HistoryTree tree;
  tree.node_of_row = grow(labels, sketch, watch);
  tree.offsets.assign(labels.offsets.begin(), labels.offsets.end());

  // Number the nodes in shortlex order: breadth first, children in label order.
  const std::size_t nodes = sketch.nodes.size();
  std::vector<Id> order{0};  // old numbers in shortlex order
  order.reserve(nodes);
  std::vector<Id> new_number(nodes);
  tree.parent.reserve(nodes);
  tree.label.reserve(nodes);
  tree.visits.reserve(nodes);
  tree.first_child.reserve(nodes + 1);
  for (std::size_t at = 0; at < nodes; ++at) {
    const Sketch::Node& old = sketch.nodes[index(order[at])];
    new_number[index(order[at])] = static_cast<Id>(at);
    tree.parent.push_back(at == 0 ? none : new_number[index(old.parent)]);
    tree.label.push_back(old.label);
    tree.visits.push_back(old.visits);
    tree.first_child.push_back(static_cast<Id>(order.size()));
    for (Id child = old.first_child; child != none; child = sketch.nodes[index(child)].next_sibling)
      order.push_back(child);
    if (old.children > 1)
      std::ranges::sort(order.end() - old.children, order.end(), {},
                        [&](Id child) { return sketch.nodes[index(child)].label; });
  }
  tree.first_child.push_back(static_cast<Id>(nodes));
  for (Id& node : tree.node_of_row) node = new_number[index(node)];
  return tree;
}

std::variant<PrefixTree, Contradiction> build_prefix_tree(const HistoryTree& histories, const Outputs& outputs) {
  // Outputs grouped by node.
  const auto nodes = static_cast<std::size_t>(histories.size());
  const std::size_t rows = outputs.alpha.size();
  std::vector<std::size_t> start(nodes + 1, 0);
  for (std::size_t row = 0; row < rows; ++row)
    if (outputs.alpha[row] != none) ++start[index(histories.node_of_row[row]) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Output> grouped(start.back());
  {
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t row = 0; row < rows; ++row)
      if (outputs.alpha[row] != none)
        grouped[next[index(histories.node_of_row[row])]++] = {outputs.alpha[row], outputs.output[row]};
  }

  // Equal alphas of a node become one output and a count.
  PrefixTree tree{histories, {}, {}, {}, last_outputs(histories, outputs)};
  tree.first_output.reserve(nodes + 1);
  tree.outputs.reserve(grouped.size());
  tree.counts.reserve(grouped.size());
  for (std::size_t node = 0; node < nodes; ++node) {
    tree.first_output.push_back(tree.outputs.size());
    const auto begin = grouped.begin() + static_cast<std::ptrdiff_t>(start[node]);
    const auto end = grouped.begin() + static_cast<std::ptrdiff_t>(start[node + 1]);
    if (end - begin > 1) std::sort(begin, end, [](Output a, Output b) { return a.alpha < b.alpha; });
    for (auto group = begin; group != end;) {
      auto next = group;
      for (; next != end && next->alpha == group->alpha; ++next)
        if (next->output != group->output) return find_rows(histories, outputs, static_cast<Id>(node), group->alpha);
      tree.outputs.push_back(*group);
      tree.counts.push_back(next - group);
      group = next;
    }
  }
  tree.first_output.push_back(tree.outputs.size());
  return tree;
}

}  // namespace resolvent
