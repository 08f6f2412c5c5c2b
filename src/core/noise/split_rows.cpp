#include "split_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace resolvent {
namespace {

// Output counts of a row, or of a part of it.
struct Counts {
  std::vector<Id> counts;
  Row total = 0;

  void clear(std::size_t outputs) {
    counts.assign(outputs, 0);
    total = 0;
  }
  void add(std::size_t output) {
    ++counts[output];
    ++total;
  }
  [[nodiscard]] Row deviating() const { return total - *std::max_element(counts.begin(), counts.end()); }
};

}  // namespace

std::vector<StatePair> weigh_pairs(const OutputCells& cells, std::span<const Id> counts, Id states,
                                   const NoiseShape& noise) {
  const RowLikelihood weigh(cells, noise);
  std::vector<StatePair> pairs;
  std::vector<Id> both;
  for (std::size_t first = 0; first < index(states); ++first)
    for (std::size_t second = first + 1; second < index(states); ++second) {
      StatePair pair;
      double most = 0.0;
      for (std::size_t query = 0; query < cells.queries(); ++query) {
        if (cells.outputs(query) < 2) continue;
        const Id* first_counts = &counts[first * cells.size() + index(cells.first[query])];
        const Id* second_counts = &counts[second * cells.size() + index(cells.first[query])];
        both.assign(first_counts, first_counts + cells.outputs(query));
        const Id first_total = std::accumulate(both.begin(), both.end(), 0);
        const Id second_total = std::accumulate(second_counts, second_counts + cells.outputs(query), 0);
        if (first_total == 0 || second_total == 0) continue;
        for (std::size_t at = 0; at < both.size(); ++at) both[at] += second_counts[at];
        const double odds = weigh(query, first_counts) + weigh(query, second_counts) - weigh(query, both.data());
        pair.log_odds += odds;
        if (odds <= 0.0) continue;
        ++pair.queries;
        pair.total += first_total + second_total;
        if (odds > most) {
          most = odds;
          pair.query = static_cast<Id>(query);
        }
      }
      pairs.push_back(pair);
    }
  return pairs;
}

std::vector<SplitRow> split_rows(const OutputCells& cells, std::span<const Id> state, std::span<const Id> values,
                                 const NoiseShape& noise, double least) {
  const RowLikelihood weigh(cells, noise);
  std::vector<std::size_t> order;  // rows by state and query
  for (std::size_t row = 0; row < state.size(); ++row)
    if (state[row] != none && cells.of_row[row] != none) order.push_back(row);
  const auto key = [&](std::size_t row) { return std::pair(state[row], cells.query[index(cells.of_row[row])]); };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t first, std::size_t second) { return key(first) < key(second); });

  std::vector<SplitRow> result;
  std::vector<std::pair<Id, std::size_t>> members;  // value, output
  Counts all;
  Counts part;
  const std::size_t features = state.empty() ? 0 : values.size() / state.size();
  for (std::size_t feature = 0; feature < features; ++feature) {
    const Id* value = &values[feature * state.size()];
    for (std::size_t at = 0; at < order.size();) {
      const auto [in_state, query] = key(order[at]);
      const auto outputs = index(cells.outputs(index(query)));
      members.clear();
      all.clear(outputs);
      for (; at < order.size() && key(order[at]) == std::pair(in_state, query); ++at) {
        if (value[order[at]] == none) continue;
        const auto output = index(cells.of_row[order[at]] - cells.first[index(query)]);
        members.emplace_back(value[order[at]], output);
        all.add(output);
      }
      if (outputs < 2 || all.deviating() == 0) continue;
      std::sort(members.begin(), members.end());
      SplitRow row{static_cast<Id>(feature), in_state, query, -weigh(index(query), all.counts.data()), all.total,
                   all.deviating(),          0};
      for (std::size_t first = 0; first < members.size();) {
        part.clear(outputs);
        const Id same = members[first].first;
        for (; first < members.size() && members[first].first == same; ++first) part.add(members[first].second);
        row.log_odds += weigh(index(query), part.counts.data());
        row.deviating_apart += part.deviating();
      }
      if (row.log_odds > least) result.push_back(row);
    }
  }
  return result;
}

}  // namespace resolvent
