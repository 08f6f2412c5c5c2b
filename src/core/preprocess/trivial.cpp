#include "trivial.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>

#include "elementary.hpp"
#include "pair_map.hpp"

namespace resolvent {
namespace {

// Most labels that are needed show it near the root: so many nodes, the first ones, are
// looked at before all are.
constexpr std::size_t top = 4096;

// Where each of the first nodes comes to lie in the tree without the label; numbered as met.
std::vector<Id> nodes_without(const HistoryTree& tree, Id label, std::size_t nodes_looked_at) {
  std::vector<Id> moved(nodes_looked_at, 0);
  PairMap children(moved.size());
  Id nodes = 1;
  for (Id node = 1; index(node) < moved.size(); ++node) {
    const Id above = moved[index(tree.parent[index(node)])];
    if (tree.label[index(node)] == label) {
      moved[index(node)] = above;
      continue;
    }
    Id& child = children.at(above, tree.label[index(node)]);
    if (child == none) child = nodes++;
    moved[index(node)] = child;
  }
  return moved;
}

// What an answer says, in bits: the rarer it is among those to its alpha, the
// more. An alpha that has one answer throughout says nothing.
class Surprise {
 public:
  explicit Surprise(const PrefixTree& tree) {
    for (const Answer& answer : tree.answers) {
      if (index(answer.alpha) >= asked_.size()) asked_.resize(index(answer.alpha) + 1, 0);
      ++asked_[index(answer.alpha)];
      Id& given = given_.at(answer.alpha, answer.output);
      given = given == none ? 1 : given + 1;
    }
  }

  [[nodiscard]] double bits(Answer answer) const {
    return binary_log(static_cast<double>(asked_[index(answer.alpha)]) /
                     static_cast<double>(given_.find(answer.alpha, answer.output)));
  }

 private:
  std::vector<Id> asked_;
  PairMap given_;
};

struct Told {
  Answer answer;
  Id node;
};

Row first_row(const HistoryTree& tree, const Answers& answers, const Told& told) {
  for (std::size_t row = 0; row < answers.alpha.size(); ++row)
    if (tree.node_of_row[row] == told.node && answers.alpha[row] == told.answer.alpha) return static_cast<Row>(row);
  throw std::logic_error("the row of an answer is gone");
}

// Looks at the first `nodes` only; parents come before their children.
Deletion delete_label(const PrefixTree& tree, std::size_t nodes, const Answers& answers, const Surprise& surprise,
                      Id label, Id labels) {
  const HistoryTree& histories = tree.histories;
  const std::vector<Id> moved = nodes_without(histories, label, nodes);

  // By node: the label read last, the deleted one left out, and what it was
  // when the label was last deleted.
  std::vector<Id> last(nodes, none);
  std::vector<Id> deleted_after(nodes, none);
  Deletion found;
  found.bits.resize(index(labels) + 1, 0.0);
  found.occurrences.resize(index(labels) + 1, 0);
  for (std::size_t node = 1; node < nodes; ++node) {
    const std::size_t above = index(histories.parent[node]);
    const bool gone = histories.label[node] == label;
    last[node] = gone ? last[above] : histories.label[node];
    deleted_after[node] = gone ? last[above] + 1 : deleted_after[above];
    if (gone) ++found.occurrences[index(last[above] + 1)];
  }

  // Nodes grouped by where they come to lie, in shortlex order within a group.
  std::vector<std::size_t> start(nodes + 1, 0);
  for (const Id node : moved) ++start[index(node) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<Id> grouped(nodes);
  {
    std::vector<std::size_t> next(start.begin(), start.end() - 1);
    for (std::size_t node = 0; node < nodes; ++node) grouped[next[index(moved[node])]++] = static_cast<Id>(node);
  }

  std::vector<Told> told;
  for (std::size_t group = 0; group < nodes; ++group) {
    if (start[group + 1] - start[group] < 2) continue;
    told.clear();
    for (std::size_t at = start[group]; at < start[group + 1]; ++at) {
      const Id node = grouped[at];
      for (std::size_t answer = tree.first_answer[index(node)]; answer < tree.first_answer[index(node) + 1]; ++answer)
        told.push_back({tree.answers[answer], node});
    }
    std::ranges::stable_sort(told, {}, [](const Told& one) { return one.answer.alpha; });
    for (std::size_t first = 0, next = 0; first < told.size(); first = next) {
      while (next < told.size() && told[next].answer.alpha == told[first].answer.alpha) {
        if (told[next].answer.output != told[first].answer.output)
          return {0, {}, {}, Contradiction{first_row(histories, answers, told[first]), first_row(histories, answers, told[next])}};
        ++next;
      }
      const double bits = next - first < 2 ? 0.0 : surprise.bits(told[first].answer);
      if (bits == 0.0) continue;
      found.agreements += static_cast<Row>(next - first) - 1;
      for (std::size_t at = first; at < next; ++at)
        if (const Id context = deleted_after[index(told[at].node)]; context != none)
          found.bits[index(context)] += bits;
    }
  }
  return found;
}

}  // namespace

std::vector<Deletion> delete_labels(const PrefixTree& tree, const Answers& answers, std::span<const Id> named,
                                    Id labels) {
  const Surprise surprise(tree);
  std::vector<Deletion> found;
  const std::size_t nodes = index(tree.size());
  for (const Id label : named) {
    found.push_back(delete_label(tree, std::min(nodes, top), answers, surprise, label, labels));
    if (nodes > top && !found.back().contradiction)
      found.back() = delete_label(tree, nodes, answers, surprise, label, labels);
  }
  return found;
}

}  // namespace resolvent
