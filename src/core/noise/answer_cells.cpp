#include "answer_cells.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace resolvent {
namespace {

// How often noise alone gives an answer to a query, at most: so many standard deviations
// more than is expected.
double rare(const AnswerCells& cells, std::size_t asked, double noise, double deviations) {
  const double expected = noise * static_cast<double>(cells.asked(asked)) / std::max<double>(cells.answers(asked), 1);
  return expected + deviations * std::sqrt(expected);
}

// When an answer returns: so many standard deviations more often than by chance.
constexpr double returning_deviations = 4.0;
constexpr int most_last_labels = 3;  // that are looked at, besides all of them

// Nodes whose last labels are the same, one more of them than in the groups given.
std::vector<Id> after_one_label_more(const HistoryTree& histories, const std::vector<Id>& group) {
  std::map<std::pair<Id, Id>, Id> numbers{{{none, none}, 0}};
  std::vector<Id> longer(group.size());
  for (std::size_t node = 1; node < group.size(); ++node) {
    const std::pair<Id, Id> key{histories.label[node], group[index(histories.parent[node])]};
    longer[node] = numbers.try_emplace(key, static_cast<Id>(numbers.size())).first->second;
  }
  return longer;
}

// Marks answers whose numbers in groups of nodes are further from their share than those of a
// fair draw would be.
void mark_returning(const AnswerCells& cells, const HistoryTree& histories, const std::vector<Id>& group,
                    std::vector<std::uint8_t>& returning) {
  // Rows by group, and in it by cell.
  std::vector<std::pair<Id, Id>> rows;
  for (std::size_t row = 0; row < cells.of_row.size(); ++row)
    if (cells.of_row[row] != none) rows.emplace_back(group[index(histories.node_of_row[row])], cells.of_row[row]);
  std::sort(rows.begin(), rows.end());
  // Sums over groups: of squares, and of an answer times its query.
  std::vector<double> given_squared(cells.size());
  std::vector<double> given_asked(cells.size());
  std::vector<double> asked_squared(cells.queries());
  const auto query = [&](std::size_t row) { return cells.query[index(rows[row].second)]; };
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end].first == rows[begin].first && query(end) == query(begin)) ++end;
    const auto asked = static_cast<double>(end - begin);
    asked_squared[index(query(begin))] += asked * asked;
    for (std::size_t at = begin, run = begin; at < end; run = at) {
      while (at < end && rows[at].second == rows[run].second) ++at;
      const auto times = static_cast<double>(at - run);
      given_squared[index(rows[run].second)] += times * times;
      given_asked[index(rows[run].second)] += times * asked;
    }
  }
  for (std::size_t asked = 0; asked < cells.queries(); ++asked) {
    const auto all = static_cast<double>(cells.asked(asked));
    for (auto cell = index(cells.first[asked]); cell < index(cells.first[asked + 1]); ++cell) {
      const double share = static_cast<double>(cells.count[cell]) / all;
      const double fair = share * (1.0 - share);
      const double off = given_squared[cell] - 2.0 * share * given_asked[cell] + share * share * asked_squared[asked];
      const double variance = fair * all + 2.0 * fair * fair * asked_squared[asked];
      if (off - fair * all > returning_deviations * std::sqrt(variance)) returning[cell] = 1;
    }
  }
}

}  // namespace

AnswerCells number_answers(const Answers& answers) {
  const std::size_t rows = answers.alpha.size();
  Id most = none;
  for (const Id alpha : answers.alpha) most = std::max(most, alpha);
  const std::size_t queries = index(most + 1);

  std::vector<std::size_t> begin(queries + 1);
  for (const Id alpha : answers.alpha)
    if (alpha != none) ++begin[index(alpha) + 1];
  for (std::size_t asked = 0; asked < queries; ++asked) begin[asked + 1] += begin[asked];
  std::vector<Id> given(begin.back());
  {
    std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t row = 0; row < rows; ++row)
      if (answers.alpha[row] != none) given[next[index(answers.alpha[row])]++] = answers.output[row];
  }

  AnswerCells cells;
  std::vector<Id> output;  // by cell
  cells.first.reserve(queries + 1);
  for (std::size_t asked = 0; asked < queries; ++asked) {
    cells.first.push_back(static_cast<Id>(output.size()));
    std::sort(&given[0] + begin[asked], &given[0] + begin[asked + 1]);
    for (std::size_t at = begin[asked]; at < begin[asked + 1]; ++at) {
      if (at == begin[asked] || given[at] != given[at - 1]) {
        output.push_back(given[at]);
        cells.query.push_back(static_cast<Id>(asked));
        cells.count.push_back(0);
      }
      ++cells.count.back();
    }
  }
  cells.first.push_back(static_cast<Id>(output.size()));

  cells.of_row.assign(rows, none);
  for (std::size_t row = 0; row < rows; ++row) {
    if (answers.alpha[row] == none) continue;
    const auto from = output.begin() + cells.first[index(answers.alpha[row])];
    const auto to = output.begin() + cells.first[index(answers.alpha[row]) + 1];
    cells.of_row[row] = static_cast<Id>(std::lower_bound(from, to, answers.output[row]) - output.begin());
  }
  return cells;
}

std::vector<std::uint8_t> returning_answers(const AnswerCells& cells, const HistoryTree& histories) {
  std::vector<std::uint8_t> returning(cells.size());
  std::vector<Id> group(histories.parent.size());
  for (int labels = 1; labels <= most_last_labels; ++labels) {
    group = after_one_label_more(histories, group);
    mark_returning(cells, histories, group, returning);
  }
  std::iota(group.begin(), group.end(), 0);
  mark_returning(cells, histories, group, returning);
  return returning;
}

AnswerCells telling_answers(const AnswerCells& cells, const std::vector<std::uint8_t>& returning, double noise,
                            double deviations) {
  AnswerCells kept;
  std::vector<Id> renumbered(cells.size(), none);
  for (std::size_t asked = 0; asked < cells.queries(); ++asked) {
    const double at_most = rare(cells, asked, noise, deviations);
    std::vector<Id> telling;
    const auto count = cells.count.begin();
    const auto favourite = std::max_element(count + cells.first[asked], count + cells.first[asked + 1]) - count;
    for (Id cell = cells.first[asked]; cell < cells.first[asked + 1]; ++cell)
      if (cell == favourite || returning[index(cell)] != 0 || static_cast<double>(cells.count[index(cell)]) > at_most)
        telling.push_back(cell);
    if (telling.size() < 2) continue;
    kept.first.push_back(static_cast<Id>(kept.size()));
    for (const Id cell : telling) {
      renumbered[index(cell)] = static_cast<Id>(kept.size());
      kept.query.push_back(static_cast<Id>(kept.first.size()) - 1);
      kept.count.push_back(cells.count[index(cell)]);
    }
  }
  kept.first.push_back(static_cast<Id>(kept.size()));
  kept.of_row.reserve(cells.of_row.size());
  for (const Id cell : cells.of_row) kept.of_row.push_back(cell == none ? none : renumbered[index(cell)]);
  return kept;
}

}  // namespace resolvent
