// The prefix tree while it is being merged: folding in place, with exact undo.
//
// Invariant: red states form the automaton found so far, and whatever hangs
// below a state that is not red is still a tree, because merges only ever
// target red states. So a fold meets each state below `blue` once, and no
// visited set is needed.
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
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

struct Child {
  Id label;
  Id state;
};

class FoldingTree {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  // What answers are worth is asked only if somebody wants to know what folds tell.
  explicit FoldingTree(const PrefixTree& tree, const Worth* worth = nullptr);

  [[nodiscard]] Id size() const { return static_cast<Id>(nodes_.size() - 1); }
  [[nodiscard]] bool is_red(Id state) const { return at(state).red; }
  [[nodiscard]] bool is_blue(Id state) const {
    return state > 0 && !is_red(state) && merged_into(state) == state && is_red(at(state).parent);
  }

  void make_red(Id state) {
    index_state(state);
    at(state).red = true;
  }

  // Merges a blue state into a red one with all that follows from it. Returns how many
  // answers agreed, or nothing, and the tree as it was, when two disagree.
  // With a horizon the fold stops once so many answers have been looked at;
  // such a fold is for scoring and must be undone.
  std::optional<std::int64_t> try_fold(Id red, Id blue, Pulse& pulse, std::size_t horizon = unlimited);

  // What the agreeing answers of the last successful fold tell, near ones more than far ones.
  [[nodiscard]] std::int64_t evidence() const { return evidence_ / Worth::nearest; }

  // Takes back the last successful fold, or keeps it for good.
  void undo();
  void keep();

  // How many states the last successful fold merged away.
  [[nodiscard]] std::int64_t folded() const { return static_cast<std::int64_t>(queue_.size()); }

  // What the last successful fold did, before it is undone: how many answers and
  // children states gained; which (`answered`, state, symbol) they were; and the
  // states that were folded into.
  [[nodiscard]] std::size_t gains() const { return changes_.size() - 1; }  // the first is the edge to blue
  template <typename Visit>
  void each_gain(Visit visit) const {
    for (const Change& change : changes_)
      if (change.kind != Change::redirected) visit(change.kind == Change::answered, change.state, change.symbol);
  }
  template <typename Visit>
  void each_target(Visit visit) const {
    for (std::size_t at = 0; at < processed_; ++at) visit(queue_[at].into);
  }

  // Visits the states that the last successful fold made blue.
  template <typename Visit>
  void each_new_blue(Visit visit) const {
    for (const Change& change : changes_)
      if (change.kind == Change::grafted && is_red(change.state)) visit(change.other);
  }

  // Children in label order.
  void children(Id state, std::vector<Child>& into) const;
  void answers(Id state, std::vector<Answer>& into) const;

  // The state that a state hangs from.
  [[nodiscard]] Id above(Id state) const { return at(state).parent; }

  // What a red state answers; none if that is not known.
  [[nodiscard]] Id red_output(Id state, Id alpha) const { return outputs_.find(state, alpha); }

  // The state that `node` was merged into, or itself.
  [[nodiscard]] Id merged_into(Id node) const { return at(node).merged_into; }

 private:
  // What a state has: what the tree gave it (answers and children up to where
  // the next node's begin) and what it gained by folding (linked lists, newest
  // first). All in half a cache line, since a fold visits states by the million.
  struct alignas(32) Node {
    Id first_child;
    std::uint32_t first_answer;
    std::int32_t gained_answers;
    std::int32_t gained_children;
    Id label;
    Id parent;
    Id merged_into;
    std::uint32_t gained : 30;
    std::uint32_t indexed : 1;
    std::uint32_t red : 1;
  };
  struct Change {
    enum Kind : std::uint8_t { answered, grafted, redirected } kind;
    Id state;
    Id symbol;
    Id other;   // grafted: the child; redirected: where the edge went before
    Id before;  // grafted: the child's parent before
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
  [[nodiscard]] std::span<const Answer> tree_answers(Id state) const;
  [[nodiscard]] Id output_of(Id state, Id alpha) const;
  [[nodiscard]] Id child_of(Id state, Id label) const;
  void index_state(Id state);
  void index_if_large(Id state);
  void prefetch(std::size_t next) const;
  [[nodiscard]] bool agree(Id red, Id state) const;
  bool fold_answers(Pair pair);
  template <typename Visit>
  bool each_answer(Id state, Visit visit) const;
  void count_agreement(Answer answer) {
    ++score_;
    if (weight_ > 0) on_this_level_ += worth_->of(answer);
  }
  void gain_answer(Id state, Answer answer);
  void fold_children(Pair pair);
  void fold_child(Id into, Child child);

  std::span<const Answer> answers_;
  std::vector<Node> nodes_;
  std::vector<Link> answer_links_;
  std::vector<Link> child_links_;

  // Red states and others with much to know are indexed in hash tables; the
  // many small ones are searched where they lie, which touches less memory.
  PairMap outputs_;   // (state, alpha) → output
  PairMap children_;  // (state, label) → state

  std::vector<Change> changes_;
  std::vector<Pair> queue_;
  std::vector<Child> scratch_;
  const Worth* worth_;
  std::int64_t score_ = 0;
  std::int64_t evidence_ = 0;       // of levels above
  std::int64_t on_this_level_ = 0;  // what answers tell that are as many labels away
  std::int64_t weight_ = 0;         // of this level; 0: nothing is asked
  std::size_t looked_at_ = 0;
  std::size_t processed_ = 0;  // how far into the queue the last fold came
};

}  // namespace resolvent
