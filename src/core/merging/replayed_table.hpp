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
  // How much the answers disagree, in thousandths of a nat, as `TableAnnealing` has it:
  // 0 just when the table explains the tree.
  using Disagreement = std::int64_t;

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
  [[nodiscard]] Disagreement disagreement() const { return disagreement_; }
  [[nodiscard]] Id state_of(Id node) const { return state_of_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Id parent_of(Id node) const { return parent_[static_cast<std::size_t>(node)]; }

  [[nodiscard]] Id label_of(Id node) const { return tree_.nodes[static_cast<std::size_t>(node)].label; }

  // How many nodes are in a state, and how many go through one of its transitions.
  [[nodiscard]] Id nodes_in(Id state) const { return nodes_in_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] Id traffic(Id state, Id label) const { return traffic_[entry(state, label)]; }

  // Changes where a transition leads, and replays what that touches. Stops on the way once
  // the disagreement exceeds `most`; then all since the last mark must be undone.
  bool change(Id state, Id label, Id target, Disagreement most);

  // What was done since a mark can be undone.
  [[nodiscard]] std::size_t mark() const { return done_.size(); }
  void undo(std::size_t mark);
  void forget() { done_.clear(); }

  // Cells of state and alpha with answers that differ; and the nodes that gave one answer
  // of such a cell, that which fewest gave.
  [[nodiscard]] std::size_t conflicts() const { return conflicted_.size(); }
  void rarest_of_conflict(std::size_t conflict, std::vector<Id>& nodes) const;

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
  std::vector<Disagreement> weight_;  // of one answer more, by how many there are
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
  Disagreement disagreement_ = 0;
  std::int64_t visits_ = 0;
};

}  // namespace resolvent
