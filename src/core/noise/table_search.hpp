// Search steps on tables of transitions: split a state, join two states, change single transitions.
#pragma once

#include <cstdint>
#include <vector>

#include "log_evidence.hpp"
#include "output_cells.hpp"
#include "prefix_tree.hpp"
#include "random.hpp"
#include "table_replay.hpp"
#include "watch.hpp"

namespace resolvent {

// Holds one table. The tree of label sequences must outlive it.
class TableSearch {
 public:
  // `informative` has the outputs to score, `noise` the assumed noise.
  TableSearch(const HistoryTree& histories, OutputCells informative, Id labels, const NoiseShape& noise, Watch& watch);

  // Start from a complete table.
  void start(const Transitions& transitions) { replay_.start(transitions, watch_); }
  // Split a state along a transition into it. Return false if no transition is used twice.
  bool split();
  // Join two states. There must be two.
  void join();
  void polish() { replay_.polish(watch_); }
  // Keep the present table unless annealing finds a better one.
  void anneal(double heat, Random& random);

  [[nodiscard]] double score() const { return replay_.score(); }
  [[nodiscard]] const Transitions& transitions() const { return replay_.transitions(); }

 private:
  struct Candidate {
    Transitions transitions;
    Id first = none;  // the states to settle between, if any
    Id second = none;
    double score = 0.0;
  };

  template <typename Work>
  void in_turn(std::vector<Candidate>& candidates, Work work);
  void take_best(std::vector<Candidate> candidates, std::size_t most_polished);

  OutputCells informative_;
  NoisyTree tree_;
  SearchScore score_;
  TableReplay replay_;
  Watch& watch_;
};

}  // namespace resolvent
