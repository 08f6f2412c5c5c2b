// Samples with noisy outputs, and their noise estimated from repeated queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "output_cells.hpp"
#include "prefix_tree.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// Group rows by node: node v has the rows rows[first[v]] .. rows[first[v + 1]]. Return `first`.
std::vector<std::size_t> rows_by_node(const HistoryTree& histories, std::vector<std::size_t>& rows);

// The tree of label sequences without quiet labels.
HistoryTree histories_without_quiet(const Labels& labels, std::span<const std::uint8_t> quiet, Watch& watch);

// How often two outputs of a query after the same labels agree: an estimate of noise that needs no states.
// A query with n outputs at a node counts as n/2 pairs.
struct Repeats {
  std::map<Id, double> compared;  // by the number of outputs of the query, at least 2
  double agreed = 0.0;

  [[nodiscard]] double all() const;
  // Share of outputs that are independent of the main one.
  [[nodiscard]] double noise() const;
};
Repeats count_repeats(const OutputCells& cells, const HistoryTree& histories);

struct NoisySamples {
  NoisySamples(const Outputs& outputs, const Labels& read, std::span<const std::uint8_t> quiet, Watch& watch);

  Labels labels;
  OutputCells cells;          // of all outputs
  HistoryTree without_quiet;  // without quiet labels
  double noise;               // estimated from repeats
};

}  // namespace resolvent
