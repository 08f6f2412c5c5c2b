// How likely the answers of single rows are; log_evidence.hpp says under which model.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "answer_cells.hpp"
#include "samples.hpp"

namespace resolvent {

struct NoiseShape {
  double strength = 50;  // how alike the rows are
  double share = 0.1;    // of answers that have nothing to do with the main one
};

// ln Γ(from + n) − ln Γ(from), from a table while n is small.
class RisingLog {
 public:
  explicit RisingLog(double from);
  double operator()(Id n) const;

 private:
  double from_;
  double at_zero_;
  std::array<double, 128> table_{};
};

// Weighs rows of queries whose answers are those of `cells`, which must outlive it.
class RowWeights {
 public:
  RowWeights(const AnswerCells& cells, const NoiseShape& noise);

  // ln of how likely a row is. `counts` has a number for each answer of the query, by cell.
  [[nodiscard]] double operator()(std::size_t query, const Id* counts) const;

 private:
  // For queries with so many answers: around any answer, and around the main one.
  struct Rising {
    Rising(const NoiseShape& noise, Id answers);
    RisingLog other;
    RisingLog main;
  };

  const AnswerCells& cells_;
  RisingLog all_;
  std::map<Id, Rising> by_answers_;
  std::vector<const Rising*> rising_;  // by query; nothing where it can only be answered in one way
  std::vector<double> weight_;         // by cell: how likely it is the main answer, in advance
  std::vector<double> log_weight_;
};

}  // namespace resolvent
