// Simulated annealing of transition tables with a given number of states: change one transition, replay
// what it affects, and keep the change if fewer outputs disagree, or occasionally if more do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "conflict_tree.hpp"
#include "random.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// Disagreement of outputs in thousandths of a nat: over each state and alpha, the number of outputs times
// their entropy. It is 0 if and only if the table explains the tree.
using Disagreement = std::int64_t;

// Cooling schedule: to a known final temperature, or by the share of changes that are kept. Temperatures
// are in nats.
struct Cooling {
  double hot;
  std::optional<double> cold;
};

class TableAnnealing {
 public:
  // The tree must outlive it.
  TableAnnealing(const ConflictTree& tree, Id states, Id labels);

  // Start from a table with targets below `states`, or from a random one.
  void start(Targets table);
  void start(Random& random);

  [[nodiscard]] const Targets& table() const { return table_; }
  [[nodiscard]] Disagreement disagreement() const { return disagreement_; }

  // Information in the outputs that agree, in nats.
  [[nodiscard]] double agreement() const;

  // Try up to `moves` random changes while cooling, and freeze in the end. Stop once nothing disagrees;
  // return the number of changes tried.
  std::int64_t anneal(std::int64_t moves, Cooling cooling, Random& random, Watch& watch);

  // For a table that explains the tree: where several targets do, choose those with most agreeing outputs,
  // weighted by information, and of equals the first.
  void settle(Watch& watch);

  // Nodes visited so far.
  [[nodiscard]] std::int64_t visits() const { return visits_; }

 private:
  // Change a transition, and keep that if the disagreement ends within `limit`. Undo it early once it
  // exceeds the limit by more than `slack`, as for most bad changes.
  bool try_change(Id state, Id label, Id target, Disagreement limit, Disagreement slack);
  void tick(Watch& watch);
  void move_node(Id node, Id to);
  void add_outputs(Id node);
  void remove_outputs(Id node);
  void take_back(Id state, Id label, Id target);

  struct Moved {
    Id node;
    Id before;
  };

  const ConflictTree& tree_;
  Id states_;
  Id labels_;
  std::vector<Disagreement> weight_;          // of one more output, by count
  std::vector<Disagreement> information_of_;  // by output: in thousandths of a nat, the rarer, the higher
  Targets table_;
  std::vector<Id> state_of_;            // by node
  std::vector<Id> alpha_count_;         // by state and alpha: number of outputs
  std::vector<Id> output_count_;        // by state and output: count
  std::vector<std::int64_t> moved_at_;  // by node: the last change that moved it
  std::vector<Moved> moved_;
  Disagreement disagreement_ = 0;
  Disagreement information_ = 0;  // of all pairs of state and output that occur
  std::int64_t changes_ = 0;
  std::int64_t visits_ = 0;
  std::int64_t visits_reported_ = 0;
};

}  // namespace resolvent
