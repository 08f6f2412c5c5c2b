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

// Of each state so many nodes are looked at, as long as there are not too many in all: one of
// them may have seen what another has not.
constexpr std::size_t candidates_of_state = 8;

// Of machines with more states than this, not every state is looked at: what one clique takes
// grows with the third power of the nodes.
constexpr std::size_t candidates_of_any_machine = 2'048;

// Cliques are grown from the first nodes in turn for as long as that takes so many steps.
constexpr std::size_t steps_for_cliques = 4'000'000;

// Numbers from 0 on, as bits.
class Set {
 public:
  explicit Set(std::size_t size) : words_((size + 63) / 64, 0) {}

  void add(std::size_t at) { words_[at / 64] |= std::uint64_t{1} << (at % 64); }
  [[nodiscard]] bool has(std::size_t at) const { return (words_[at / 64] >> (at % 64) & 1) != 0; }
  [[nodiscard]] bool empty() const {
    return std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; });
  }
  [[nodiscard]] std::size_t shared_with(const Set& other) const {
    std::size_t count = 0;
    for (std::size_t at = 0; at < words_.size(); ++at)
      count += static_cast<std::size_t>(std::popcount(words_[at] & other.words_[at]));
    return count;
  }
  void keep(const Set& other) {
    for (std::size_t at = 0; at < words_.size(); ++at) words_[at] &= other.words_[at];
  }

 private:
  std::vector<std::uint64_t> words_;
};

// By node, how many answers there are at it and below it.
std::vector<std::int64_t> answers_below(const PrefixTree& tree) {
  std::vector<std::int64_t> below(index(tree.size()));
  for (Id node = tree.size() - 1; node >= 0; --node) {
    below[index(node)] += static_cast<std::int64_t>(tree.first_answer[index(node) + 1] - tree.first_answer[index(node)]);
    if (node > 0) below[index(tree.histories.parent[index(node)])] += below[index(node)];
  }
  return below;
}

// Orders nodes by falling richness; of equals, the earlier ones first.
auto richer(const std::vector<std::int64_t>& below) {
  return [&below](Id a, Id b) { return below[index(a)] != below[index(b)] ? below[index(a)] > below[index(b)] : a < b; };
}

// The nodes with most answers at and below them.
std::vector<Id> richest_nodes(const PrefixTree& tree) {
  const std::vector<std::int64_t> below = answers_below(tree);
  std::vector<Id> nodes(index(tree.size()));
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto count = std::min(nodes.size(), candidates_at_most);
  const auto end = nodes.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(nodes.begin(), end, nodes.end(), richer(below));
  nodes.resize(count);
  return nodes;
}

// The same for each state: the first of all states, then the second.
std::vector<Id> richest_of_states(const PrefixTree& tree, std::span<const Id> state_of) {
  const std::vector<std::int64_t> below = answers_below(tree);
  const Id states = *std::ranges::max_element(state_of) + 1;
  std::vector<std::vector<Id>> richest(candidates_of_state, std::vector<Id>(index(states), none));
  for (Id node = 0; node < tree.size(); ++node) {
    Id next = node;
    for (auto& place : richest) {
      Id& known = place[index(state_of[index(node)])];
      if (next != none && (known == none || richer(below)(next, known))) std::swap(next, known);
    }
  }
  std::vector<Id> nodes;
  for (auto& place : richest) {
    std::erase(place, none);
    std::ranges::sort(place, richer(below));
    nodes.insert(nodes.end(), place.begin(), place.end());
  }
  const std::size_t most = std::min(std::max(candidates_at_most, 2 * index(states)), candidates_of_any_machine);
  nodes.resize(std::min(nodes.size(), most));
  return nodes;
}

class Conflicts {
 public:
  Conflicts(const PrefixTree& tree, std::int64_t work, Pulse& pulse) : tree_(tree), pulse_(pulse), work_(work) {}

  // Whether some labels lead from the two nodes to different answers, as far as the work allows
  // to say: short ones first.
  bool between(Id first, Id second) {
    ahead_.assign(1, {first, second});
    for (std::size_t next = 0; next < ahead_.size() && work_ > 0; ++next, --work_) {
      pulse_.beat();
      const Pair pair = ahead_[next];
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
  std::int64_t work_;  // that is left
  std::vector<Pair> ahead_;
};

// Grows a clique from each node in turn, or from as many as there are steps for, always by the
// node that leaves most others to choose from; returns the size of the largest. None is larger
// than `at_most`.
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

// Nodes that a machine explains by the same state, if `state_of` tells one, do not conflict.
Id clique_among(const PrefixTree& tree, const std::vector<Id>& nodes, std::span<const Id> state_of, std::int64_t work,
                Pulse& pulse) {
  const auto may_conflict = [&](Id one, Id other) {
    return state_of.empty() || state_of[index(one)] != state_of[index(other)];
  };
  std::vector<Set> conflicts(nodes.size(), Set(nodes.size()));
  Conflicts conflict(tree, work, pulse);
  for (std::size_t one = 0; one < nodes.size(); ++one)
    for (std::size_t other = 0; other < one; ++other)
      if (may_conflict(nodes[one], nodes[other]) && conflict.between(nodes[one], nodes[other])) {
        conflicts[one].add(other);
        conflicts[other].add(one);
      }
  const Id states = state_of.empty() ? tree.size() : *std::ranges::max_element(state_of) + 1;
  return largest_clique(conflicts, index(states));
}

}  // namespace

Id fewest_states(const PrefixTree& tree, Pulse& pulse) {
  return clique_among(tree, richest_nodes(tree), {}, std::numeric_limits<std::int64_t>::max(), pulse);
}

Id fewest_states(const PrefixTree& tree, std::span<const Id> state_of, std::int64_t work, Pulse& pulse) {
  return clique_among(tree, richest_of_states(tree, state_of), state_of, work, pulse);
}

}  // namespace resolvent
