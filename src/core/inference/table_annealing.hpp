// Simulated annealing over the transition tables of machines with a given
// number of states: change one transition, replay what it touches, keep the
// change when fewer answers disagree, or now and then when more do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "clash_tree.hpp"
#include "pulse.hpp"
#include "random.hpp"
#include "samples.hpp"

namespace resolvent {

// How much the answers disagree, in thousandths of a nat: over each state and
// alpha, the number of answers times the entropy of their outputs. It is 0 just
// when the table explains the tree.
using Disagreement = std::int64_t;

// How an annealing cools: to a temperature that is known to be right, or as the
// share of changes that are kept falls. Temperatures are in nats.
struct Cooling {
  double hot;
  std::optional<double> cold;
};

class TableAnnealing {
 public:
  // The tree must outlive this.
  TableAnnealing(const ClashTree& tree, Id states, Id labels);

  // Takes a table with targets below `states`, or draws one.
  void start(Targets table);
  void start(Random& random);

  [[nodiscard]] const Targets& table() const { return table_; }
  [[nodiscard]] Disagreement disagreement() const { return disagreement_; }

  // In nats, how surprising it is that so many answers agree.
  [[nodiscard]] double agreement() const;

  // Tries up to `moves` random changes while it cools, and freezes in the end. Stops
  // at once when nothing disagrees any more; returns how many changes were tried.
  std::int64_t anneal(std::int64_t moves, Cooling cooling, Random& random, Pulse& pulse);

  // Given a table that explains the tree: where several targets do, takes those on
  // which most answers agree, the rarer ones counting for more, and of equals the
  // first.
  void settle(Pulse& pulse);

  // Nodes looked at so far: what the work cost.
  [[nodiscard]] std::int64_t visits() const { return visits_; }

 private:
  // Changes where (state, label) leads and keeps that if the disagreement ends up
  // within `limit`. It is taken back early when it exceeds the limit by more than
  // `slack` on the way, as most changes that are far too bad soon do.
  bool try_change(Id state, Id label, Id target, Disagreement limit, Disagreement slack);
  void beat(Pulse& pulse);
  void move_node(Id node, Id to);
  void gain_answers(Id node);
  void lose_answers(Id node);
  void take_back(Id state, Id label, Id target);

  struct Moved {
    Id node;
    Id before;
  };

  const ClashTree& tree_;
  Id states_;
  Id labels_;
  std::vector<Disagreement> weight_;       // of one answer more, by how many there are
  std::vector<Disagreement> surprise_of_;  // by output: in thousandths of a nat, the rarer the more
  Targets table_;
  std::vector<Id> state_of_;          // by node
  std::vector<Id> answered_;          // by state and alpha: how many answers
  std::vector<Id> answered_as_;       // by state and output: how many answers
  std::vector<std::int64_t> moved_at_;  // by node: the last change that moved it
  std::vector<Moved> moved_;
  Disagreement disagreement_ = 0;
  Disagreement surprise_ = 0;  // of all pairs of state and output that occur
  std::int64_t changes_ = 0;
  std::int64_t visits_ = 0;
  std::int64_t visits_told_ = 0;
};

}  // namespace resolvent
