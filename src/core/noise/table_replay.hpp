// Label histories with noisy answers, read by a table of moves that changes one move at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "answer_cells.hpp"
#include "log_evidence.hpp"
#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "random.hpp"

namespace resolvent {

// The tree of label histories and the answers that tell something at each node, as cells.
// Both must outlive it.
struct NoisyTree {
  NoisyTree(const HistoryTree& tree, const AnswerCells& telling, Id label_count);

  [[nodiscard]] bool has_answers(std::size_t node) const { return first_answer[node] < first_answer[node + 1]; }

  const HistoryTree& histories;
  const AnswerCells& cells;
  Id labels;
  std::vector<std::size_t> first_answer;  // node v has the answers first_answer[v] .. first_answer[v + 1]
  std::vector<Id> answer;                 // cells
  std::vector<std::size_t> first_edge;    // label l leads to the nodes edge[first_edge[l]] .. edge[first_edge[l + 1]]
  std::vector<Id> edge;
};

// What rows are worth while searching: as in log_evidence.hpp, but with the likeliest main
// answer instead of the sum over all, and with no cost for the answer that is most frequent
// overall. With more noise than there is, the score rises more evenly towards a good machine.
class SearchScore {
 public:
  SearchScore(const AnswerCells& cells, const NoiseShape& noise);

  // What is gained by the n-th further answer (from 0 on) of a cell, if it is not the main one.
  [[nodiscard]] double other(std::size_t cell, Id n) const { return tables_[cell_[cell].other + index(n)]; }
  // What is gained by the first n answers of a cell, and what the first n of a row cost.
  [[nodiscard]] double others(std::size_t cell, Id n) const { return tables_[cell_[cell].others + index(n)]; }
  [[nodiscard]] double anys(Id n) const { return anys_[index(n)]; }
  // What is gained over that if the cell, n times answered, is the main one.
  [[nodiscard]] double main(std::size_t cell, Id n) const {
    return cell_[cell].prior + tables_[cell_[cell].main + index(n)];
  }
  // What the n-th further answer of a row costs.
  [[nodiscard]] double any(Id n) const { return any_[index(n)]; }

 private:
  struct Cell {
    std::size_t other;  // where its tables begin
    std::size_t main;
    std::size_t others;
    double prior;
  };

  std::vector<Cell> cell_;
  std::vector<double> tables_;
  std::vector<double> any_;
  std::vector<double> anys_{0.0};
};

class TableReplay {
 public:
  TableReplay(const NoisyTree& tree, const SearchScore& score);

  // Reads all histories with a table in which every label leads somewhere.
  void start(const Moves& moves, Pulse& pulse);

  // Changes a move if the score is at least `at_least` then, and says whether it did. Gives up
  // as soon as the score is below that by more than `slack`.
  bool try_move(Id state, Id label, Id target, double at_least, double slack, Pulse& pulse);

  // Changes single moves until none is worth it: any, or those into or out of two states.
  void polish(Pulse& pulse);
  void settle(Id one, Id other, Pulse& pulse);

  // Tries so many random moves, of which it also takes some that cost score, fewer and fewer:
  // one that costs `hot` is taken with probability 1/e at first. Ends with the best table met.
  void anneal(std::int64_t tries, double hot, Random& random, Pulse& pulse);

  [[nodiscard]] double score() const { return score_; }
  [[nodiscard]] const Moves& moves() const { return moves_; }
  [[nodiscard]] Id states() const { return states_; }
  [[nodiscard]] std::span<const Id> state_of_node() const { return state_of_; }

 private:
  void add(Id node);
  void remove(Id node);
  void put(Id node, Id state);
  void undo(double score_before);
  void set_main(double& main, double value);
  [[nodiscard]] double best_main(std::size_t query, const Id* counts) const;

  const NoisyTree& tree_;
  const SearchScore& value_;
  Moves moves_;
  Id states_ = 0;
  std::vector<Id> state_of_;
  std::vector<Id> counts_;      // state, cell
  std::vector<Id> asked_;       // state, query
  std::vector<double> main_;    // state, query: what the likeliest main answer is worth
  std::vector<std::pair<Id, Id>> moved_;  // node, and the state it was in
  std::vector<std::int64_t> moved_at_;
  std::vector<std::pair<std::size_t, double>> replaced_;  // places in main_, and what was there before
  std::int64_t changes_ = 0;
  double score_ = 0.0;
};

}  // namespace resolvent
