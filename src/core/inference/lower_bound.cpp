#include "lower_bound.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace resolvent {
namespace {

constexpr std::size_t candidates_at_most = 192;

// Several nodes per state are candidates, since they have different outputs below them; the total is
// limited.
constexpr std::size_t candidates_of_state = 8;

// Maximum number of candidates for large machines: the time for a clique grows with the third power of the
// nodes.
constexpr std::size_t candidates_of_any_machine = 2'048;

// Maximum number of steps for growing cliques from the first nodes.
constexpr std::size_t steps_for_cliques = 4'000'000;

// A set of small numbers, as bits.
class Set {
 public:
  explicit Set(std::size_t size) : words_((size + 63) / 64, 0) {}

  void add(std::size_t at) { words_[at / 64] |= std::uint64_t{1} << (at % 64); }
  [[nodiscard]] bool has(std::size_t at) const { return (words_[at / 64] >> (at % 64) & 1) != 0; }
  [[nodiscard]] bool empty() const {
    return std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; });
  }
  [[nodiscard]] std::size_t shared_with(const Set& second) const {
    std::size_t count = 0;
    for (std::size_t at = 0; at < words_.size(); ++at)
      count += static_cast<std::size_t>(std::popcount(words_[at] & second.words_[at]));
    return count;
  }
  void keep(const Set& second) {
    for (std::size_t at = 0; at < words_.size(); ++at) words_[at] &= second.words_[at];
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Number of outputs at and below each node.
std::vector<std::int64_t> outputs_below(const PrefixTree& tree) {
  std::vector<std::int64_t> below(index(tree.size()));
  for (Id node = tree.size() - 1; node >= 0; --node) {
    below[index(node)] +=
        static_cast<std::int64_t>(tree.first_output[index(node) + 1] - tree.first_output[index(node)]);
    if (node > 0) below[index(tree.histories.parent[index(node)])] += below[index(node)];
  }
  return below;
}

// Order by descending number of outputs, then by node.
auto by_richness(const std::vector<std::int64_t>& below) {
  return
      [&below](Id a, Id b) { return below[index(a)] != below[index(b)] ? below[index(a)] > below[index(b)] : a < b; };
}

// The nodes with most outputs at and below them.
std::vector<Id> richest_nodes(const PrefixTree& tree) {
  const std::vector<std::int64_t> below = outputs_below(tree);
  std::vector<Id> nodes(index(tree.size()));
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto count = std::min(nodes.size(), candidates_at_most);
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(nodes.begin(), end, nodes.end(), by_richness(below));
  nodes.resize(count);
  return nodes;
}

// The same for each state: the best node of each state, then the second best, and so on.
std::vector<Id> richest_of_states(const PrefixTree& tree, std::span<const Id> state_of) {
  const std::vector<std::int64_t> below = outputs_below(tree);
  const Id states = *std::ranges::max_element(state_of) + 1;
  std::vector<std::vector<Id>> richest(candidates_of_state, std::vector<Id>(index(states), none));
  for (Id node = 0; node < tree.size(); ++node) {
    Id next = node;
    for (auto& nodes_of_rank : richest) {
      Id& known = nodes_of_rank[index(state_of[index(node)])];
      if (next != none && (known == none || by_richness(below)(next, known))) std::swap(next, known);
    }
  }
  std::vector<Id> nodes;
  for (auto& nodes_of_rank : richest) {
    std::erase(nodes_of_rank, none);
    std::ranges::sort(nodes_of_rank, by_richness(below));
    nodes.insert(nodes.end(), nodes_of_rank.begin(), nodes_of_rank.end());
  }
  const std::size_t most = std::min(std::max(candidates_at_most, 2 * index(states)), candidates_of_any_machine);
  nodes.resize(std::min(nodes.size(), most));
  return nodes;
}

class Conflicts {
 public:
  Conflicts(const PrefixTree& tree, std::int64_t work, Watch& watch) : tree_(tree), watch_(watch), work_(work) {}

  // Whether a label sequence leads from the two nodes to different outputs, shortest first, within the work
  // limit.
  bool between(Id first, Id second) {
    ahead_.assign(1, {first, second});
    for (std::size_t next = 0; next < ahead_.size() && work_ > 0; ++next, --work_) {
      watch_.tick();
      const Pair pair = ahead_[next];
      if (outputs_differ(pair)) return true;
      push_children(pair);
    }
    return false;
  }

 private:
  struct Pair {
    Id first;
    Id second;
  };

  [[nodiscard]] bool outputs_differ(Pair pair) const {
    auto at_first = tree_.first_output[index(pair.first)];
    auto at_second = tree_.first_output[index(pair.second)];
    while (at_first < tree_.first_output[index(pair.first) + 1] &&
           at_second < tree_.first_output[index(pair.second) + 1]) {
      const Output& a = tree_.outputs[at_first];
      const Output& b = tree_.outputs[at_second];
      if (a.alpha == b.alpha && a.output != b.output) return true;
      at_first += a.alpha <= b.alpha;
      at_second += b.alpha <= a.alpha;
    }
    return false;
  }

  void push_children(Pair pair) {
    const HistoryTree& histories = tree_.histories;
    Id at_first = histories.first_child[index(pair.first)];
    Id at_second = histories.first_child[index(pair.second)];
    while (at_first < histories.first_child[index(pair.first) + 1] &&
           at_second < histories.first_child[index(pair.second) + 1]) {
      const Id a = histories.label[index(at_first)];
      const Id b = histories.label[index(at_second)];
      if (a == b) ahead_.push_back({at_first, at_second});
      at_first += a <= b;
      at_second += b <= a;
    }
  }

  const PrefixTree& tree_;
  Watch& watch_;
  std::int64_t work_;  // remaining
  std::vector<Pair> ahead_;
};

// Grow a clique greedily from each node in turn, within a limit of steps; return the size of the largest,
// at most `at_most`.
Id largest_clique(const std::vector<Set>& conflicts, std::size_t at_most) {
  std::size_t largest = 0;
  std::size_t steps = 0;
  for (std::size_t first = 0; first < conflicts.size() && steps < steps_for_cliques && largest < at_most; ++first) {
    Set open = conflicts[first];
    std::size_t size = 1;
    for (; !open.empty(); ++size) {
      std::size_t best = 0;
      std::size_t most = 0;
      for (std::size_t next = 0; next < conflicts.size(); ++next) {
        if (!open.has(next)) continue;
        ++steps;
        const std::size_t left = open.shared_with(conflicts[next]) + 1;
        if (left > most) {
          most = left;
          best = next;
        }
      }
      open.keep(conflicts[best]);
    }
    largest = std::max(largest, size);
  }
  return static_cast<Id>(largest);
}

// Nodes with the same state under `state_of`, if given, do not conflict.
Id clique_among(const PrefixTree& tree, const std::vector<Id>& nodes, std::span<const Id> state_of, std::int64_t work,
                Watch& watch) {
  const auto may_conflict = [&](Id first, Id second) {
    return state_of.empty() || state_of[index(first)] != state_of[index(second)];
  };
  std::vector<Set> conflicts(nodes.size(), Set(nodes.size()));
  Conflicts conflict(tree, work, watch);
  for (std::size_t first = 0; first < nodes.size(); ++first)
    for (std::size_t second = 0; second < first; ++second)
      if (may_conflict(nodes[first], nodes[second]) && conflict.between(nodes[first], nodes[second])) {
        conflicts[first].add(second);
        conflicts[second].add(first);
      }
  const Id states = state_of.empty() ? tree.size() : *std::ranges::max_element(state_of) + 1;
  return largest_clique(conflicts, index(states));
}

}  // namespace

Id fewest_states(const PrefixTree& tree, Watch& watch) {
  return clique_among(tree, richest_nodes(tree), {}, std::numeric_limits<std::int64_t>::max(), watch);
}

Id fewest_states(const PrefixTree& tree, std::span<const Id> state_of, std::int64_t work, Watch& watch) {
  return clique_among(tree, richest_of_states(tree, state_of), state_of, work, watch);
}

}  // namespace resolvent
