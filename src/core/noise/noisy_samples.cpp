#include "noisy_samples.hpp"

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

HistoryTree histories_without_quiet(const Labels& labels, std::span<const std::uint8_t> quiet, Watch& watch) {
  std::vector<Id> beta(labels.beta.begin(), labels.beta.end());
  for (Id& label : beta)
    if (label != none && quiet[index(label)] != 0) label = none;
  return build_history_tree({beta, labels.offsets}, watch);
}

Repeats count_repeats(const OutputCells& cells, const HistoryTree& histories) {
  std::vector<std::size_t> rows;
  const auto first = rows_by_node(histories, rows);
  Repeats repeats;
  std::vector<Id> cells_of_node;
  for (std::size_t node = 0; node + 1 < first.size(); ++node) {
    cells_of_node.clear();
    for (std::size_t at = first[node]; at < first[node + 1]; ++at) {
      if (const Id cell = cells.of_row[rows[at]]; cell != none) cells_of_node.push_back(cell);
    }
    std::sort(cells_of_node.begin(), cells_of_node.end());
    for (std::size_t at = 0; at < cells_of_node.size();) {
      const Id query = cells.query[index(cells_of_node[at])];
      const std::size_t begin = at;
      double same = 0.0;
      while (at < cells_of_node.size() && cells.query[index(cells_of_node[at])] == query) {
        const std::size_t run = at;
        while (at < cells_of_node.size() && cells_of_node[at] == cells_of_node[run]) ++at;
        const auto times = static_cast<double>(at - run);
        same += times * (times - 1.0) / 2.0;
      }
      const auto total = static_cast<double>(at - begin);
      if (total < 2.0) continue;
      // Pairs within a row are dependent: weight a row by its number of outputs.
      repeats.agreed += same / (total - 1.0);
      repeats.compared[std::max<Id>(cells.outputs(index(query)), 2)] += total / 2.0;
    }
  }
  return repeats;
}

double Repeats::all() const {
  double total = 0.0;
  for (const auto& [outputs, count] : compared) total += count;
  return total;
}

double Repeats::noise() const {
  if (all() < 1.0) return 0.01;  // no query was repeated
  double least = 0.0;
  double most = 0.95;
  for (int halving = 0; halving < 40; ++halving) {
    const double noise = (least + most) / 2.0;
    double expected = 0.0;
    for (const auto& [outputs, count] : compared)
      expected += count * ((1.0 - noise) * (1.0 - noise) + noise * (2.0 - noise) / outputs);
    (expected > agreed ? least : most) = noise;
  }
  return std::max(least, 1e-4);
}

NoisySamples::NoisySamples(const Outputs& outputs, const Labels& read, std::span<const std::uint8_t> quiet,
                           Watch& watch)
    : labels(read),
      cells(number_outputs(outputs)),
      without_quiet(histories_without_quiet(read, quiet, watch)),
      noise(count_repeats(cells, without_quiet).noise()) {}

}  // namespace resolvent
