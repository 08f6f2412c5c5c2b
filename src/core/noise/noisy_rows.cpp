#include "noisy_rows.hpp"

#include <algorithm>
#include <map>

namespace resolvent {

std::vector<std::size_t> rows_by_node(const HistoryTree& histories, std::vector<std::size_t>& rows) {
  std::vector<std::size_t> first(histories.parent.size() + 1);
  for (const Id node : histories.node_of_row) ++first[index(node) + 1];
  for (std::size_t node = 0; node + 1 < first.size(); ++node) first[node + 1] += first[node];
  rows.resize(histories.node_of_row.size());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for (std::size_t row = 0; row < rows.size(); ++row) rows[next[index(histories.node_of_row[row])]++] = row;
  return first;
}

HistoryTree loud_histories(const Labels& labels, std::span<const std::uint8_t> quiet, Pulse& pulse) {
  std::vector<Id> beta(labels.beta.begin(), labels.beta.end());
  for (Id& label : beta)
    if (label != none && quiet[index(label)] != 0) label = none;
  return build_history_tree({beta, labels.offsets}, pulse);
}

Repeats count_repeats(const AnswerCells& cells, const HistoryTree& histories) {
  std::vector<std::size_t> rows;
  const auto first = rows_by_node(histories, rows);
  Repeats repeats;
  std::vector<Id> given;
  for (std::size_t node = 0; node + 1 < first.size(); ++node) {
    given.clear();
    for (std::size_t at = first[node]; at < first[node + 1]; ++at) {
      if (const Id cell = cells.of_row[rows[at]]; cell != none) given.push_back(cell);
    }
    std::sort(given.begin(), given.end());
    for (std::size_t at = 0; at < given.size();) {
      const Id query = cells.query[index(given[at])];
      const std::size_t begin = at;
      double same = 0.0;
      while (at < given.size() && cells.query[index(given[at])] == query) {
        const std::size_t run = at;
        while (at < given.size() && given[at] == given[run]) ++at;
        const auto times = static_cast<double>(at - run);
        same += times * (times - 1.0) / 2.0;
      }
      const auto asked = static_cast<double>(at - begin);
      if (asked < 2.0) continue;
      // Pairs of one row are not independent: a row counts as often as it has answers.
      repeats.agreed += same / (asked - 1.0);
      repeats.compared[std::max<Id>(cells.answers(index(query)), 2)] += asked / 2.0;
    }
  }
  return repeats;
}

double Repeats::all() const {
  double total = 0.0;
  for (const auto& [answers, count] : compared) total += count;
  return total;
}

double Repeats::noise() const {
  if (all() < 1.0) return 0.01;  // nothing was asked twice
  double least = 0.0;
  double most = 0.95;
  for (int halving = 0; halving < 40; ++halving) {
    const double noise = (least + most) / 2.0;
    double expected = 0.0;
    for (const auto& [answers, count] : compared)
      expected += count * ((1.0 - noise) * (1.0 - noise) + noise * (2.0 - noise) / answers);
    (expected > agreed ? least : most) = noise;
  }
  return std::max(least, 1e-4);
}

NoisyRows::NoisyRows(const Answers& answers, const Labels& read, std::span<const std::uint8_t> quiet, Pulse& pulse)
    : labels(read), cells(number_answers(answers)), loud(loud_histories(read, quiet, pulse)),
      noise(count_repeats(cells, loud).noise()) {}

}  // namespace resolvent
