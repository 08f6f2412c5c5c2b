#include "lower_bound.hpp"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

constexpr std::size_t candidates_at_most = 192;
using Set = std::bitset<candidates_at_most>;

// The nodes with most answers at and below them; of equals, the earlier ones.
std::vector<Id> richest_nodes(const PrefixTree& tree) {
  std::vector<std::int64_t> below(index(tree.size()));
  for (Id node = tree.size() - 1; node >= 0; --node) {
    below[index(node)] += static_cast<std::int64_t>(tree.first_answer[index(node) + 1] - tree.first_answer[index(node)]);
    if (node > 0) below[index(tree.histories.parent[index(node)])] += below[index(node)];
  }
  std::vector<Id> nodes(index(tree.size()));
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto count = std::min(nodes.size(), candidates_at_most);
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(nodes.begin(), end, nodes.end(), [&](Id a, Id b) {
    return below[index(a)] != below[index(b)] ? below[index(a)] > below[index(b)] : a < b;
  });
  nodes.resize(count);
  return nodes;
}

class Conflicts {
 public:
  Conflicts(const PrefixTree& tree, Pulse& pulse) : tree_(tree), pulse_(pulse) {}

  // Whether some labels lead from the two nodes to different answers.
  bool between(Id first, Id second) {
    ahead_.assign(1, {first, second});
    while (!ahead_.empty()) {
      pulse_.beat();
      const Pair pair = ahead_.back();
      ahead_.pop_back();
      if (answers_differ(pair)) return true;
      push_children(pair);
    }
    return false;
  }

 private:
  struct Pair {
    Id first;
    Id second;
  };

  [[nodiscard]] bool answers_differ(Pair pair) const {
    auto mine = tree_.first_answer[index(pair.first)];
    auto yours = tree_.first_answer[index(pair.second)];
    while (mine < tree_.first_answer[index(pair.first) + 1] && yours < tree_.first_answer[index(pair.second) + 1]) {
      const Answer& a = tree_.answers[mine];
      const Answer& b = tree_.answers[yours];
      if (a.alpha == b.alpha && a.output != b.output) return true;
      mine += a.alpha <= b.alpha;
      yours += b.alpha <= a.alpha;
    }
    return false;
  }

  void push_children(Pair pair) {
    const HistoryTree& histories = tree_.histories;
    Id mine = histories.first_child[index(pair.first)];
    Id yours = histories.first_child[index(pair.second)];
    while (mine < histories.first_child[index(pair.first) + 1] && yours < histories.first_child[index(pair.second) + 1]) {
      const Id a = histories.label[index(mine)];
      const Id b = histories.label[index(yours)];
      if (a == b) ahead_.push_back({mine, yours});
      mine += a <= b;
      yours += b <= a;
    }
  }

  const PrefixTree& tree_;
  Pulse& pulse_;
  std::vector<Pair> ahead_;
};

// Grows a clique from each node in turn, always by the node that leaves most
// others to choose from; returns the size of the largest.
Id largest_clique(const std::vector<Set>& conflicts) {
  std::size_t largest = 0;
  for (std::size_t first = 0; first < conflicts.size(); ++first) {
    Set open = conflicts[first];
    std::size_t size = 1;
    for (; open.any(); ++size) {
      std::size_t best = 0;
      std::size_t most = 0;
      for (std::size_t next = 0; next < conflicts.size(); ++next) {
        if (!open[next]) continue;
        const std::size_t left = (open & conflicts[next]).count() + 1;
        if (left > most) {
          most = left;
          best = next;
        }
      }
      open &= conflicts[best];
    }
    largest = std::max(largest, size);
  }
  return static_cast<Id>(largest);
}

}  // namespace

Id fewest_states(const PrefixTree& tree, Pulse& pulse) {
  const std::vector<Id> nodes = richest_nodes(tree);
  std::vector<Set> conflicts(nodes.size());
  Conflicts conflict(tree, pulse);
  for (std::size_t one = 0; one < nodes.size(); ++one)
    for (std::size_t other = 0; other < one; ++other)
      if (conflict.between(nodes[one], nodes[other])) {
        conflicts[one].set(other);
        conflicts[other].set(one);
      }
  return largest_clique(conflicts);
}

}  // namespace resolvent
