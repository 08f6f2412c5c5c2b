// The steps of a search among tables of moves: one state more, one state less, single moves.
#pragma once

#include <cstdint>
#include <vector>

#include "answer_cells.hpp"
#include "log_evidence.hpp"
#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "random.hpp"
#include "table_replay.hpp"

namespace resolvent {

// Holds one table and changes it. The histories must outlive it.
class TableSearch {
 public:
  // `telling` are the answers to look at, `noise` how much of it they are taken to have.
  TableSearch(const HistoryTree& histories, AnswerCells telling, Id labels, const NoiseShape& noise, Pulse& pulse);

  // Looks at a table in which every label leads somewhere.
  void start(const Moves& moves) { replay_.start(moves, pulse_); }
  // One state more: a state is split along a move that leads into it. False if there is none
  // that is made twice.
  bool split();
  // One state less: all that led to a state leads to another. There must be two.
  void join();
  void polish() { replay_.polish(pulse_); }
  // Keeps what it was if annealing finds nothing better.
  void anneal(double heat, Random& random);

  [[nodiscard]] double score() const { return replay_.score(); }
  [[nodiscard]] const Moves& moves() const { return replay_.moves(); }

 private:
  struct Candidate {
    Moves moves;
    Id one = none;  // states to settle between, if any
    Id other = none;
    double score = 0.0;
  };

  template <typename Work>
  void in_turn(std::vector<Candidate>& candidates, Work work);
  void take_best(std::vector<Candidate> candidates, std::size_t most_polished);

  AnswerCells telling_;
  NoisyTree tree_;
  SearchScore score_;
  TableReplay replay_;
  Pulse& pulse_;
};

}  // namespace resolvent
