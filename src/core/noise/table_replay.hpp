// Label sequences with noisy outputs, replayed through a table of transitions that changes one entry at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "log_evidence.hpp"
#include "output_cells.hpp"
#include "prefix_tree.hpp"
#include "random.hpp"
#include "watch.hpp"

namespace resolvent {

// The tree of label sequences with the informative outputs of each node, as cells. Both must outlive it.
struct NoisyTree {
  NoisyTree(const HistoryTree& tree, const OutputCells& informative, Id label_count);

  [[nodiscard]] bool has_outputs(std::size_t node) const { return first_output[node] < first_output[node + 1]; }

  const HistoryTree& histories;
  const OutputCells& cells;
  Id labels;
  std::vector<std::size_t> first_output;  // node v has the outputs first_output[v] .. first_output[v + 1]
  std::vector<Id> output;                 // cells
  std::vector<std::size_t> first_edge;    // label l leads to the nodes edge[first_edge[l]] .. edge[first_edge[l + 1]]
  std::vector<Id> edge;
};

// Score of rows during the search: as in log_evidence.hpp, but with the most likely main output instead of
// the sum over all, and no cost for the most frequent output of a query. Assuming more noise than there is
// makes the score rise more evenly towards a good machine.
class SearchScore {
 public:
  SearchScore(const OutputCells& cells, const NoiseShape& noise);

  // Gain of the n-th further output (from 0 on) of a cell that is not the main one.
  [[nodiscard]] double other(std::size_t cell, Id n) const { return tables_[cell_[cell].other + index(n)]; }
  // Gain of the first n outputs of a cell, and cost of the first n outputs of a row.
  [[nodiscard]] double others(std::size_t cell, Id n) const { return tables_[cell_[cell].others + index(n)]; }
  [[nodiscard]] double anys(Id n) const { return anys_[index(n)]; }
  // Additional gain if the cell, with n outputs, is the main one.
  [[nodiscard]] double main(std::size_t cell, Id n) const {
    return cell_[cell].prior + tables_[cell_[cell].main + index(n)];
  }
  // Cost of the n-th further output of a row.
  [[nodiscard]] double any(Id n) const { return any_[index(n)]; }

 private:
  struct Cell {
    std::size_t other;  // first entries of its tables
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

  // Replay all label sequences through a complete table.
  void start(const Transitions& transitions, Watch& watch);

  // Change a transition if the score is then at least `at_least`; return whether it was changed. Give up
  // once the score is lower by more than `slack`.
  bool try_transition(Id state, Id label, Id target, double at_least, double slack, Watch& watch);

  // Change single transitions while that improves the score: any, or those into or out of two states.
  void polish(Watch& watch);
  void settle(Id first, Id second, Watch& watch);

  // Try random changes, accepting some that lower the score, fewer and fewer: initially one that costs
  // `hot` with probability 1/e. Ends with the best table.
  void anneal(std::int64_t tries, double hot, Random& random, Watch& watch);

  [[nodiscard]] double score() const { return score_; }
  [[nodiscard]] const Transitions& transitions() const { return transitions_; }
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
  Transitions transitions_;
  Id states_ = 0;
  std::vector<Id> state_of_;
  std::vector<Id> counts_;                // [state, cell]
  std::vector<Id> query_count_;           // [state, query]
  std::vector<double> main_;              // [state, query]: score of the best main output
  std::vector<std::pair<Id, Id>> moved_;  // node, previous state
  std::vector<std::int64_t> moved_at_;
  std::vector<std::pair<std::size_t, double>> replaced_;  // index in main_, previous value
  std::int64_t changes_ = 0;
  double score_ = 0.0;
};

}  // namespace resolvent
