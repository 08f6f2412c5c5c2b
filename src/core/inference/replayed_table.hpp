// A machine's transitions with all label histories replayed through them: where each
// node of the tree is, which answers meet in each state, and which of them disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clash_tree.hpp"
#include "samples.hpp"

namespace resolvent {

class ReplayedTable {
 public:
  // Thousandths of a nat.
  using Nats = std::int64_t;

  // One of the tree's nodes that a change moved, or one entry of the table that it changed.
  struct Step {
    Id node;    // none for an entry
    Id entry;   // of the table
    Id before;  // the state of the node, or the target of the entry
  };

  // The tree must outlive this.
  ReplayedTable(const ClashTree& tree, Targets table, Id labels);

  [[nodiscard]] Id states() const { return states_; }
  [[nodiscard]] Id labels() const { return labels_; }
  [[nodiscard]] const Targets& targets() const { return table_; }
  [[nodiscard]] Id target(Id state, Id label) const { return table_[entry(state, label)]; }
  // How much the answers disagree, as `TableAnnealing` has it: 0 just when the table explains the
  // tree.
  [[nodiscard]] Nats disagreement() const { return disagreement_; }

  // Of all pairs of state and answer that occur, how surprising they are together: the less, the
  // more answers agree.
  [[nodiscard]] Nats surprise() const { return surprise_; }
  [[nodiscard]] Id state_of(Id node) const { return state_of_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Id parent_of(Id node) const { return parent_[static_cast<std::size_t>(node)]; }

  [[nodiscard]] Id label_of(Id node) const { return tree_.nodes[static_cast<std::size_t>(node)].label; }

  // How many nodes are in a state, and how many go through one of its transitions.
  [[nodiscard]] Id nodes_in(Id state) const { return nodes_in_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] Id traffic(Id state, Id label) const { return traffic_[entry(state, label)]; }

  // Changes where a transition leads, and replays what that touches. Stops on the way once
  // the disagreement exceeds `most`; then all since the last mark must be undone.
  bool change(Id state, Id label, Id target, Nats most);

  // Changes can be undone back to a mark, or all since they were last kept for good.
  [[nodiscard]] std::size_t mark() const { return done_.size(); }
  void undo(std::size_t mark = 0);
  void forget() { done_.clear(); }

  // How many cells of state and alpha have answers that differ; and, up to a few, the nodes of such
  // a cell that gave the rarest answer or the most frequent one.
  [[nodiscard]] std::size_t conflicts() const { return conflicted_.size(); }
  void nodes_in_conflict(std::size_t conflict, bool rarest, std::vector<Id>& nodes) const;

  // Nodes looked at so far: what the work cost.
  [[nodiscard]] std::int64_t visits() const { return visits_; }

 private:
  [[nodiscard]] std::size_t entry(Id state, Id label) const { return static_cast<std::size_t>(state * labels_ + label); }
  void move_node(Id node, Id to);
  void place(Id node, Id state);
  void take_away(Id node);
  void link_edge(Id node, std::size_t at);
  void unlink_edge(Id node, std::size_t at);
  void note_conflict(std::size_t cell, bool conflicted);

  const ClashTree& tree_;
  Targets table_;
  Id labels_;
  Id states_;
  std::vector<Id> parent_;      // by node
  std::vector<Id> answer_node_;  // by answer
  std::vector<std::vector<Id>> outputs_of_alpha_;
  std::vector<Nats> weight_;  // of one answer more, by how many there are
  std::vector<Nats> surprise_of_;  // by output: the rarer the more
  std::vector<Id> state_of_;          // by node
  std::vector<Id> nodes_in_;          // by state
  std::vector<Id> traffic_;           // by entry
  std::vector<Id> first_edge_;        // by entry: nodes reached by it, in a list
  std::vector<Id> next_edge_;         // by node
  std::vector<Id> edge_before_;       // by node
  std::vector<Id> answered_;          // by state and alpha: how many answers
  std::vector<Id> distinct_;          // by state and alpha: how many different ones
  std::vector<Id> answered_as_;       // by state and output: how many answers
  std::vector<Id> first_answer_;      // by state and output: answers, in a list
  std::vector<Id> next_answer_;       // by answer
  std::vector<Id> answer_before_;     // by answer
  std::vector<std::size_t> conflicted_;
  std::vector<std::int32_t> conflict_at_;  // by state and alpha: where it stands there; -1
  std::vector<Step> done_;
  std::vector<Id> ahead_;
  Nats disagreement_ = 0;
  Nats surprise_ = 0;
  std::int64_t visits_ = 0;
};

}  // namespace resolvent
