// Log-likelihood of single rows, under the model of log_evidence.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "output_cells.hpp"
#include "samples.hpp"

namespace resolvent {

struct NoiseShape {
  double strength = 50;  // how similar the rows are
  double share = 0.1;    // of outputs that are independent of the main one
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

// Rows of the queries of `cells`, which must outlive it.
class RowLikelihood {
 public:
  RowLikelihood(const OutputCells& cells, const NoiseShape& noise);

  // Log-likelihood of a row with these counts by cell of the query.
  [[nodiscard]] double operator()(std::size_t query, const Id* counts) const;

 private:
  // For a number of outputs: tables for the main output and for the others.
  struct Rising {
    Rising(const NoiseShape& noise, Id outputs);
    RisingLog other;
    RisingLog main;
  };

  const OutputCells& cells_;
  RisingLog all_;
  std::map<Id, Rising> by_outputs_;
  std::vector<const Rising*> rising_;  // by query; null for a single output
  std::vector<double> weight_;         // by cell: prior probability to be the main output
  std::vector<double> log_weight_;
};

}  // namespace resolvent
