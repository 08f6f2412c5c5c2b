// The prefix tree during merging: folding in place, with exact undo.
//
// Invariant: red states form the automaton so far, and the graph below other states is still a tree, since
// merges only target red states. So a fold meets each state below `blue` once, and needs no set of visited
// states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "evidence.hpp"
#include "pair_map.hpp"
#include "prefix_tree.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

struct Child {
  Id label;
  Id state;
};

class FoldingTree {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  // `information` is needed for evidence() only.
  explicit FoldingTree(const PrefixTree& tree, const OutputInformation* information = nullptr);

  [[nodiscard]] Id size() const { return static_cast<Id>(nodes_.size() - 1); }
  [[nodiscard]] bool is_red(Id state) const { return at(state).red; }
  [[nodiscard]] bool is_blue(Id state) const {
    return state > 0 && !is_red(state) && merged_into(state) == state && is_red(at(state).parent);
  }

  void make_red(Id state) {
    index_state(state);
    at(state).red = true;
  }

  // Merge a blue state into a red one, with all implied merges. Return the number of outputs that agree, or
  // nullopt if two conflict; then the tree is unchanged. With a horizon, the fold stops after this number
  // of outputs; such a fold is for scoring and must be undone.
  std::optional<std::int64_t> try_fold(Id red, Id blue, Watch& watch, std::size_t horizon = unlimited);

  // Information in the outputs that agree in the last successful fold, weighted by distance.
  [[nodiscard]] std::int64_t evidence() const { return evidence_ / OutputInformation::nearest; }

  // Undo the last successful fold, or make it permanent.
  void undo();
  void keep();

  // Number of states merged away by the last successful fold.
  [[nodiscard]] std::int64_t folded() const { return static_cast<std::int64_t>(queue_.size()); }

  // The changes of the last successful fold, before it is undone: the new outputs and children of states,
  // as (`is_output`, state, symbol), and the states folded into.
  [[nodiscard]] std::size_t gains() const { return changes_.size() - 1; }  // without the edge to blue
  template <typename Visit>
  void each_gain(Visit visit) const {
    for (const Change& change : changes_)
      if (change.kind != Change::redirected) visit(change.kind == Change::output_added, change.state, change.symbol);
  }
  template <typename Visit>
  void each_target(Visit visit) const {
    for (std::size_t at = 0; at < processed_; ++at) visit(queue_[at].into);
  }

  // Visit the states that the last successful fold made blue.
  template <typename Visit>
  void each_new_blue(Visit visit) const {
    for (const Change& change : changes_)
      if (change.kind == Change::grafted && is_red(change.state)) visit(change.second);
  }

  // Children in label order.
  void children(Id state, std::vector<Child>& into) const;
  void outputs(Id state, std::vector<Output>& into) const;

  // The parent of a state.
  [[nodiscard]] Id above(Id state) const { return at(state).parent; }

  // Output of a red state, or none if unknown.
  [[nodiscard]] Id red_output(Id state, Id alpha) const { return outputs_.find(state, alpha); }

  // The state that `node` was merged into, or `node` itself.
  [[nodiscard]] Id merged_into(Id node) const { return at(node).merged_into; }

 private:
  // A state: its outputs and children in the prefix tree (up to the first ones of the next node), and those
  // gained by folding (linked lists, newest first). Half a cache line, since a fold visits millions of
  // states.
  struct alignas(32) Node {
    Id first_child;
    std::uint32_t first_output;
    std::int32_t gained_outputs;
    std::int32_t gained_children;
    Id label;
    Id parent;
    Id merged_into;
    std::uint32_t gain : 30;
    std::uint32_t indexed : 1;
    std::uint32_t red : 1;
  };
  struct Change {
    enum Kind : std::uint8_t { output_added, grafted, redirected } kind;
    Id state;
    Id symbol;
    Id second;  // grafted: the child; redirected: the previous target
    Id before;  // grafted: the previous parent of the child
  };
  struct Link {
    Id symbol;
    Id value;
    std::int32_t next;
  };
  struct Pair {
    Id into;
    Id from;
  };

  [[nodiscard]] Node& at(Id state) { return nodes_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] const Node& at(Id state) const { return nodes_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] std::span<const Output> tree_outputs(Id state) const;
  [[nodiscard]] Id output_of(Id state, Id alpha) const;
  [[nodiscard]] Id child_of(Id state, Id label) const;
  void index_state(Id state);
  void index_if_large(Id state);
  void prefetch(std::size_t next) const;
  [[nodiscard]] bool agree(Id red, Id state) const;
  bool fold_outputs(Pair pair);
  template <typename Visit>
  bool each_output(Id state, Visit visit) const;
  void count_agreement(Output output) {
    ++score_;
    if (weight_ > 0) on_this_level_ += information_->of(output);
  }
  void gain_output(Id state, Output output);
  void fold_children(Pair pair);
  void fold_child(Id into, Child child);

  std::span<const Output> seen_;
  std::vector<Node> nodes_;
  std::vector<Link> output_links_;
  std::vector<Link> child_links_;

  // Red states and large states are indexed in hash tables. Small ones are searched in place, which touches
  // less memory.
  PairMap outputs_;   // (state, alpha) → output
  PairMap children_;  // (state, label) → state

  std::vector<Change> changes_;
  std::vector<Pair> queue_;
  std::vector<Child> scratch_;
  const OutputInformation* information_;
  std::int64_t score_ = 0;
  std::int64_t evidence_ = 0;       // of previous levels
  std::int64_t on_this_level_ = 0;  // information in the outputs at this distance
  std::int64_t weight_ = 0;         // of this level; 0 if information is not needed
  std::size_t outputs_compared_ = 0;
  std::size_t processed_ = 0;  // number of pairs of the queue that the last fold processed
};

}  // namespace resolvent
