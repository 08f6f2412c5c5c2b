// Rows of noisy answers, as all that weigh machines look at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "answer_cells.hpp"
#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// The rows of each node of a tree of histories, in their order: node v has the rows
// rows[first[v]] .. rows[first[v + 1]]. Returns `first`.
std::vector<std::size_t> rows_by_node(const HistoryTree& histories, std::vector<std::size_t>& rows);

// The histories without the labels that are quiet.
HistoryTree loud_histories(const Labels& labels, std::span<const std::uint8_t> quiet, Pulse& pulse);

// How often two answers to one query after the same labels are the same: what can be known of
// noise before there are states. A query asked n times at one node counts as n / 2 pairs.
struct Repeats {
  std::map<Id, double> compared;  // by the number of answers that the query ever had, 2 at least
  double agreed = 0.0;

  [[nodiscard]] double all() const;
  // The share of answers that have nothing to do with the main one.
  [[nodiscard]] double noise() const;
};
Repeats count_repeats(const AnswerCells& cells, const HistoryTree& histories);

struct NoisyRows {
  NoisyRows(const Answers& answers, const Labels& read, std::span<const std::uint8_t> quiet, Pulse& pulse);

  Labels labels;
  AnswerCells cells;   // all answers
  HistoryTree loud;    // without quiet labels
  double noise;        // of repeats
};

}  // namespace resolvent
