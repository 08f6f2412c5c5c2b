#include "output_cells.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace resolvent {
namespace {

// Upper limit on the count of an output that noise alone explains.
double expected_by_noise(const OutputCells& cells, std::size_t query, double noise, double deviations) {
  const double expected = noise * static_cast<double>(cells.total(query)) / std::max<double>(cells.outputs(query), 1);
  return expected + deviations * std::sqrt(expected);
}

// Standard deviations above chance at which an output is recurring.
constexpr double recurring_deviations = 4.0;
constexpr int most_last_labels = 3;  // suffixes of label sequences that are compared, besides whole sequences

// Refine groups of nodes by one more of their last labels.
std::vector<Id> after_one_label_more(const HistoryTree& histories, const std::vector<Id>& group) {
  std::map<std::pair<Id, Id>, Id> numbers{{{none, none}, 0}};
  std::vector<Id> longer(group.size());
  for (std::size_t node = 1; node < group.size(); ++node) {
    const std::pair<Id, Id> key{histories.label[node], group[index(histories.parent[node])]};
    longer[node] = numbers.try_emplace(key, static_cast<Id>(numbers.size())).first->second;
  }
  return longer;
}

// Mark outputs whose counts in groups of nodes vary more than independent draws would.
void mark_recurring(const OutputCells& cells, const HistoryTree& histories, const std::vector<Id>& group,
                    std::vector<std::uint8_t>& recurring) {
  // Rows by group, then by cell.
  std::vector<std::pair<Id, Id>> rows;
  for (std::size_t row = 0; row < cells.of_row.size(); ++row)
    if (cells.of_row[row] != none) rows.emplace_back(group[index(histories.node_of_row[row])], cells.of_row[row]);
  std::sort(rows.begin(), rows.end());
  // Sums over groups: squares, and products of output and query counts.
  std::vector<double> output_squared(cells.size());
  std::vector<double> output_total(cells.size());
  std::vector<double> total_squared(cells.queries());
  const auto query_of = [&](std::size_t row) { return cells.query[index(rows[row].second)]; };
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].first == rows[begin].first && query_of(end) == query_of(begin)) ++end;
    const auto queried = static_cast<double>(end - begin);
    total_squared[index(query_of(begin))] += queried * queried;
    for (std::size_t at = begin, run = begin; at < end; run = at) {
      while (at < end && rows[at].second == rows[run].second) ++at;
      const auto times = static_cast<double>(at - run);
      output_squared[index(rows[run].second)] += times * times;
      output_total[index(rows[run].second)] += times * queried;
    }
  }
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    const auto all = static_cast<double>(cells.total(query));
    for (auto cell = index(cells.first[query]); cell < index(cells.first[query + 1]); ++cell) {
      const double share = static_cast<double>(cells.count[cell]) / all;
      const double fair = share * (1.0 - share);
      const double off = output_squared[cell] - 2.0 * share * output_total[cell] + share * share * total_squared[query];
      const double variance = fair * all + 2.0 * fair * fair * total_squared[query];
      if (off - fair * all > recurring_deviations * std::sqrt(variance)) recurring[cell] = 1;
    }
  }
}

}  // namespace

OutputCells number_outputs(const Outputs& outputs) {
  const std::size_t rows = outputs.alpha.size();
  Id most = none;
  for (const Id alpha : outputs.alpha) most = std::max(most, alpha);
  const std::size_t queries = index(most + 1);

  std::vector<std::size_t> begin(queries + 1);
  for (const Id alpha : outputs.alpha)
    if (alpha != none) ++begin[index(alpha) + 1];
  for (std::size_t query = 0; query < queries; ++query) begin[query + 1] += begin[query];
  std::vector<Id> sorted(begin.back());
  {
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t row = 0; row < rows; ++row)
      if (outputs.alpha[row] != none) sorted[next[index(outputs.alpha[row])]++] = outputs.output[row];
  }

  OutputCells cells;
  std::vector<Id> output;  // by cell
  cells.first.reserve(queries + 1);
  for (std::size_t query = 0; query < queries; ++query) {
    cells.first.push_back(static_cast<Id>(output.size()));
    std::sort(&sorted[0] + begin[query], &sorted[0] + begin[query + 1]);
    for (std::size_t at = begin[query]; at < begin[query + 1]; ++at) {
      if (at == begin[query] || sorted[at] != sorted[at - 1]) {
        output.push_back(sorted[at]);
        cells.query.push_back(static_cast<Id>(query));
        cells.count.push_back(0);
      }
      ++cells.count.back();
    }
  }
  cells.first.push_back(static_cast<Id>(output.size()));

  cells.of_row.assign(rows, none);
  for (std::size_t row = 0; row < rows; ++row) {
    if (outputs.alpha[row] == none) continue;
    const auto from = output.begin() + cells.first[index(outputs.alpha[row])];
    const auto to = output.begin() + cells.first[index(outputs.alpha[row]) + 1];
    cells.of_row[row] = static_cast<Id>(std::lower_bound(from, to, outputs.output[row]) - output.begin());
  }
  return cells;
}

std::vector<std::uint8_t> recurring_outputs(const OutputCells& cells, const HistoryTree& histories) {
  std::vector<std::uint8_t> recurring(cells.size());
  std::vector<Id> group(histories.parent.size());
  for (int labels = 1; labels <= most_last_labels; ++labels) {
    group = after_one_label_more(histories, group);
    mark_recurring(cells, histories, group, recurring);
  }
  std::iota(group.begin(), group.end(), 0);
  mark_recurring(cells, histories, group, recurring);
  return recurring;
}

OutputCells informative_outputs(const OutputCells& cells, const std::vector<std::uint8_t>& recurring, double noise,
                                double deviations) {
  OutputCells filtered;
  std::vector<Id> renumbered(cells.size(), none);
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    const double at_most = expected_by_noise(cells, query, noise, deviations);
    std::vector<Id> informative;
    const auto count = cells.count.begin();
    const auto most_frequent = std::max_element(count + cells.first[query], count + cells.first[query + 1]) - count;
    for (Id cell = cells.first[query]; cell < cells.first[query + 1]; ++cell)
      if (cell == most_frequent || recurring[index(cell)] != 0 ||
          static_cast<double>(cells.count[index(cell)]) > at_most)
        informative.push_back(cell);
    if (informative.size() < 2) continue;
    filtered.first.push_back(static_cast<Id>(filtered.size()));
    for (const Id cell : informative) {
      renumbered[index(cell)] = static_cast<Id>(filtered.size());
      filtered.query.push_back(static_cast<Id>(filtered.first.size()) - 1);
      filtered.count.push_back(cells.count[index(cell)]);
    }
  }
  filtered.first.push_back(static_cast<Id>(filtered.size()));
  filtered.of_row.reserve(cells.of_row.size());
  for (const Id cell : cells.of_row) filtered.of_row.push_back(cell == none ? none : renumbered[index(cell)]);
  return filtered;
}

}  // namespace resolvent
