// A transition table with all label sequences replayed through it: the state of each node, the outputs of
// each state, and their conflicts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conflict_tree.hpp"
#include "samples.hpp"

namespace resolvent {

class ReplayedTable {
 public:
  // Thousandths of a nat.
  using Nats = std::int64_t;

  // A node moved by a change, or a changed entry of the table.
  struct Step {
    Id node;    // none for an entry
    Id entry;   // of the table
    Id before;  // the previous state of the node, or the previous target of the entry
  };

  // The tree must outlive it.
  ReplayedTable(const ConflictTree& tree, Targets table, Id labels);

  [[nodiscard]] Id states() const { return states_; }
  [[nodiscard]] Id labels() const { return labels_; }
  [[nodiscard]] const Targets& targets() const { return table_; }
  [[nodiscard]] Id target(Id state, Id label) const { return table_[entry(state, label)]; }
  // As in `TableAnnealing`: 0 if and only if the table explains the tree.
  [[nodiscard]] Nats disagreement() const { return disagreement_; }

  // Information content of all pairs of state and output that occur: lower if more outputs agree.
  [[nodiscard]] Nats information() const { return information_; }
  [[nodiscard]] Id state_of(Id node) const { return state_of_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Id parent_of(Id node) const { return parent_[static_cast<std::size_t>(node)]; }

  [[nodiscard]] Id label_of(Id node) const { return tree_.nodes[static_cast<std::size_t>(node)].label; }

  // Number of nodes in a state, and of nodes that use a transition.
  [[nodiscard]] Id nodes_in(Id state) const { return nodes_in_[static_cast<std::size_t>(state)]; }
  [[nodiscard]] Id traffic(Id state, Id label) const { return traffic_[entry(state, label)]; }

  // Change the target of a transition, and replay what it affects. Stop once the disagreement exceeds
  // `most`; then the change must be undone.
  bool change(Id state, Id label, Id target, Nats most);

  // Undo changes back to a mark, or all changes since `forget`.
  [[nodiscard]] std::size_t mark() const { return done_.size(); }
  void undo(std::size_t mark = 0);
  void forget() { done_.clear(); }

  // Number of pairs of state and alpha with different outputs; and some nodes of such a pair with its
  // rarest or most frequent output.
  [[nodiscard]] std::size_t conflicts() const { return conflicted_.size(); }
  void nodes_in_conflict(std::size_t conflict, bool rarest, std::vector<Id>& nodes) const;

  // Nodes visited so far.
  [[nodiscard]] std::int64_t visits() const { return visits_; }

 private:
  [[nodiscard]] std::size_t entry(Id state, Id label) const {
    return static_cast<std::size_t>(state * labels_ + label);
  }
  void move_node(Id node, Id to);
  void add(Id node, Id state);
  void remove(Id node);
  void link_edge(Id node, std::size_t at);
  void unlink_edge(Id node, std::size_t at);
  void note_conflict(std::size_t cell, bool conflicted);

  const ConflictTree& tree_;
  Targets table_;
  Id labels_;
  Id states_;
  std::vector<Id> parent_;        // by node
  std::vector<Id> node_of_seen_;  // by entry of `seen`
  std::vector<std::vector<Id>> outputs_of_alpha_;
  std::vector<Nats> weight_;          // of one more output, by count
  std::vector<Nats> information_of_;  // by output: the rarer, the higher
  std::vector<Id> state_of_;          // by node
  std::vector<Id> nodes_in_;          // by state
  std::vector<Id> traffic_;           // by entry
  std::vector<Id> first_edge_;        // by entry: linked list of the nodes reached by it
  std::vector<Id> next_edge_;         // by node
  std::vector<Id> edge_before_;       // by node
  std::vector<Id> alpha_count_;       // by state and alpha: number of outputs
  std::vector<Id> distinct_;          // by state and alpha: number of different outputs
  std::vector<Id> output_count_;      // by state and output: count
  std::vector<Id> first_seen_;        // by state and output: linked list of entries of `seen`
  std::vector<Id> next_seen_;         // by entry of `seen`
  std::vector<Id> seen_before_;       // by entry of `seen`
  std::vector<std::size_t> conflicted_;
  std::vector<std::int32_t> conflict_at_;  // by state and alpha: index in `conflicted_`, or -1
  std::vector<Step> done_;
  std::vector<Id> ahead_;
  Nats disagreement_ = 0;
  Nats information_ = 0;
  std::int64_t visits_ = 0;
};

}  // namespace resolvent
