// What an agreement tells, and what is usual: the two halves of the score by which the
// orders `telling` and `rethink` merge. All of it is counted in 256ths of a bit, in
// integers, so that both engines agree to the last digit.
#pragma once

#include <cstdint>
#include <vector>

#include "pair_map.hpp"
#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

inline constexpr std::int64_t one_bit = 256;

// A fit that is so much better than the next best is as good as the only one.
inline constexpr std::int64_t sure_enough = 5 * one_bit;

// The logarithm of a number above 0, rounded down.
std::int64_t bits(std::uint64_t number);

// How much an answer tells: the rarer it is among the answers to its query, over
// the nodes of the tree, the more. Each node counts once, however often it was visited.
class Worth {
 public:
  explicit Worth(const PrefixTree& tree);

  [[nodiscard]] std::int64_t of(Answer answer) const { return worth_.find(answer.alpha, answer.output); }

  // How many different answers a query has.
  [[nodiscard]] std::int64_t kinds(Id alpha) const { return kinds_.find(alpha, 0); }

  // Answers further away from a merge tell less of it, because machines forget where they
  // began: with each label by two fifths.
  static constexpr std::int64_t nearest = 1 << 16;
  static constexpr std::int64_t further(std::int64_t weight) { return weight * 3 / 5; }

 private:
  PairMap worth_;  // (alpha, output)
  PairMap kinds_;  // (alpha, 0)
};

// Where labels usually lead, learned from the moves that were decided: back to the same
// state, or to which other one. Labels are told apart by the answer just before them.
class Habits {
 public:
  struct Move {
    Id label;
    Id lead;  // the answer just before the label
    Id from;
    Id to;  // none: a new state
  };

  // How much likelier a move is than among so many states any other, or less likely if negative.
  [[nodiscard]] std::int64_t favour(const Move& move, std::size_t states) const;

  // How many bits it takes to tell a move to somebody who knows the habits so far.
  [[nodiscard]] std::int64_t cost(const Move& move, std::size_t states) const;

  void see(const Move& move);

 private:
  struct Count {
    std::int64_t moves = 0;
    std::int64_t loops = 0;
  };

  [[nodiscard]] static Count count(const PairMap& numbers, const std::vector<Count>& counts, Id label, Id lead);
  static Count& counted(PairMap& numbers, std::vector<Count>& counts, Id label, Id lead);

  PairMap label_numbers_;   // (label, 0)
  PairMap answer_numbers_;  // (label, lead)
  PairMap reached_;         // (number of label and lead, state): how often
  std::vector<Count> of_labels_;
  std::vector<Count> of_answers_;
};

// What it takes to tell the answers of all states, each query's by how often other
// states gave them.
class AnswerCost {
 public:
  explicit AnswerCost(const Worth& worth) : worth_(worth) {}

  void add(Answer answer);
  [[nodiscard]] std::int64_t total() const { return total_; }

 private:
  const Worth& worth_;
  PairMap asked_;  // (alpha, 0)
  PairMap given_;  // (alpha, output)
  std::int64_t total_ = 0;
};

}  // namespace resolvent
