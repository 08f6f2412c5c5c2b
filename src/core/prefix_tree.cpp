#include "prefix_tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "pair_map.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

// A tree whose nodes are numbered as they were first met.
struct Sketch {
  std::vector<Id> parent{none};
  std::vector<Id> label{none};
  std::vector<Row> visits{0};
  std::vector<Id> node_of_row;
};

Sketch grow(const Samples& samples, Pulse& pulse) {
  Sketch sketch;
  const std::size_t rows = samples.beta.size();
  sketch.node_of_row.resize(rows);
  const auto labelled = rows - static_cast<std::size_t>(std::ranges::count(samples.beta, none));
  PairMap children(labelled / 4);
  for (std::size_t trace = 0; trace + 1 < samples.offsets.size(); ++trace) {
    Id node = 0;
    ++sketch.visits[0];
    const auto end = static_cast<std::size_t>(samples.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(samples.offsets[trace]); row < end; ++row) {
      pulse.beat();
      if (samples.beta[row] != none) {
        Id& child = children.at(node, samples.beta[row]);
        if (child == none) {
          if (sketch.parent.size() == index(std::numeric_limits<Id>::max()))
            throw std::length_error("the prefix tree has more than 2^31 nodes");
          child = static_cast<Id>(sketch.parent.size());
          sketch.parent.push_back(node);
          sketch.label.push_back(samples.beta[row]);
          sketch.visits.push_back(0);
        }
        node = child;
        ++sketch.visits[index(node)];
      }
      sketch.node_of_row[row] = node;
    }
  }
  return sketch;
}

// Numbers the nodes in shortlex order, fills the tree's shape, and returns the
// new number of each old node.
std::vector<Id> number_shortlex(const Sketch& sketch, PrefixTree& tree) {
  const std::size_t nodes = sketch.parent.size();
  std::vector<Id> start(nodes + 1, 0);
  for (std::size_t node = 1; node < nodes; ++node) ++start[index(sketch.parent[node]) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Id> children(nodes - 1);
  {
    std::vector<Id> next(start.begin(), start.end() - 1);
    for (std::size_t node = 1; node < nodes; ++node)
      children[index(next[index(sketch.parent[node])]++)] = static_cast<Id>(node);
  }

  std::vector<Id> order{0};  // old numbers in shortlex order
  order.reserve(nodes);
  std::vector<Id> new_number(nodes);
  tree.parent.reserve(nodes);
  tree.label.reserve(nodes);
  tree.visits.reserve(nodes);
  tree.first_child.reserve(nodes + 1);
  for (std::size_t at = 0; at < nodes; ++at) {
    const std::size_t old = index(order[at]);
    new_number[old] = static_cast<Id>(at);
    tree.parent.push_back(at == 0 ? none : new_number[index(sketch.parent[old])]);
    tree.label.push_back(sketch.label[old]);
    tree.visits.push_back(sketch.visits[old]);
    tree.first_child.push_back(static_cast<Id>(order.size()));
    const auto begin = children.begin() + start[old];
    const auto end = children.begin() + start[old + 1];
    std::sort(begin, end, [&](Id a, Id b) { return sketch.label[index(a)] < sketch.label[index(b)]; });
    order.insert(order.end(), begin, end);
  }
  tree.first_child.push_back(static_cast<Id>(nodes));
  return new_number;
}

}  // namespace

std::variant<PrefixTree, Contradiction> build_prefix_tree(const Samples& samples, Pulse& pulse) {
  PrefixTree tree;
  const Sketch sketch = grow(samples, pulse);
  const std::vector<Id> new_number = number_shortlex(sketch, tree);
  const std::size_t nodes = sketch.parent.size();

  // Rows that answer something, grouped by node.
  std::vector<std::size_t> start(nodes + 1, 0);
  const std::size_t rows = samples.alpha.size();
  for (std::size_t row = 0; row < rows; ++row)
    if (samples.alpha[row] != none) ++start[index(new_number[index(sketch.node_of_row[row])]) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  struct Seen {
    Answer answer;
    Row row;
  };
  std::vector<Seen> seen(start.back());
  {
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t row = 0; row < rows; ++row)
      if (samples.alpha[row] != none)
        seen[next[index(new_number[index(sketch.node_of_row[row])])]++] = {
            {samples.alpha[row], samples.output[row]}, static_cast<Row>(row)};
  }

  tree.first_answer.reserve(nodes + 1);
  for (std::size_t node = 0; node < nodes; ++node) {
    tree.first_answer.push_back(tree.answers.size());
    const auto begin = seen.begin() + static_cast<std::ptrdiff_t>(start[node]);
    const auto end = seen.begin() + static_cast<std::ptrdiff_t>(start[node + 1]);
    std::sort(begin, end, [](const Seen& a, const Seen& b) {
      return a.answer.alpha != b.answer.alpha ? a.answer.alpha < b.answer.alpha : a.row < b.row;
    });
    for (auto group = begin; group != end;) {
      auto next = group;
      for (; next != end && next->answer.alpha == group->answer.alpha; ++next)
        if (next->answer.output != group->answer.output) return Contradiction{group->row, next->row};
      tree.answers.push_back(group->answer);
      tree.counts.push_back(next - group);
      group = next;
    }
  }
  tree.first_answer.push_back(tree.answers.size());
  return tree;
}

}  // namespace resolvent
