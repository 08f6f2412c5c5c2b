#include "split_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace resolvent {
namespace {

// The answers of a row, or of a part of it.
struct Pile {
  std::vector<Id> counts;
  Row asked = 0;

  void clear(std::size_t answers) {
    counts.assign(answers, 0);
    asked = 0;
  }
  void add(std::size_t answer) {
    ++counts[answer];
    ++asked;
  }
  [[nodiscard]] Row odd() const { return asked - *std::max_element(counts.begin(), counts.end()); }
};

}  // namespace

std::vector<StatePair> weigh_pairs(const AnswerCells& cells, std::span<const Id> counts, Id states,
                                   const NoiseShape& noise) {
  const RowWeights weigh(cells, noise);
  std::vector<StatePair> pairs;
  std::vector<Id> together;
  for (std::size_t one = 0; one < index(states); ++one)
    for (std::size_t other = one + 1; other < index(states); ++other) {
      StatePair pair;
      double most = 0.0;
      for (std::size_t asked = 0; asked < cells.queries(); ++asked) {
        if (cells.answers(asked) < 2) continue;
        const Id* mine = &counts[one * cells.size() + index(cells.first[asked])];
        const Id* theirs = &counts[other * cells.size() + index(cells.first[asked])];
        together.assign(mine, mine + cells.answers(asked));
        const Id asked_here = std::accumulate(together.begin(), together.end(), 0);
        const Id asked_there = std::accumulate(theirs, theirs + cells.answers(asked), 0);
        if (asked_here == 0 || asked_there == 0) continue;
        for (std::size_t at = 0; at < together.size(); ++at) together[at] += theirs[at];
        const double odds = weigh(asked, mine) + weigh(asked, theirs) - weigh(asked, together.data());
        pair.log_odds += odds;
        if (odds <= 0.0) continue;
        ++pair.queries;
        pair.asked += asked_here + asked_there;
        if (odds > most) {
          most = odds;
          pair.query = static_cast<Id>(asked);
        }
      }
      pairs.push_back(pair);
    }
  return pairs;
}

std::vector<SplitRow> split_rows(const AnswerCells& cells, std::span<const Id> state, std::span<const Id> values,
                                 const NoiseShape& noise, double least) {
  const RowWeights weigh(cells, noise);
  std::vector<std::size_t> order;  // answers by state and query
  for (std::size_t row = 0; row < state.size(); ++row)
    if (state[row] != none && cells.of_row[row] != none) order.push_back(row);
  const auto key = [&](std::size_t row) { return std::pair(state[row], cells.query[index(cells.of_row[row])]); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) { return key(one) < key(other); });

  std::vector<SplitRow> found;
  std::vector<std::pair<Id, std::size_t>> members;  // value, answer
  Pile all;
  Pile part;
  const std::size_t features = state.empty() ? 0 : values.size() / state.size();
  for (std::size_t feature = 0; feature < features; ++feature) {
    const Id* value = &values[feature * state.size()];
    for (std::size_t at = 0; at < order.size();) {
      const auto [in_state, query] = key(order[at]);
      const auto answers = index(cells.answers(index(query)));
      members.clear();
      all.clear(answers);
      for (; at < order.size() && key(order[at]) == std::pair(in_state, query); ++at) {
        if (value[order[at]] == none) continue;
        const auto answer = index(cells.of_row[order[at]] - cells.first[index(query)]);
        members.emplace_back(value[order[at]], answer);
        all.add(answer);
      }
      if (answers < 2 || all.odd() == 0) continue;
      std::sort(members.begin(), members.end());
      SplitRow row{static_cast<Id>(feature), in_state, query, -weigh(index(query), all.counts.data()),
                   all.asked, all.odd(), 0};
      for (std::size_t first = 0; first < members.size();) {
        part.clear(answers);
        const Id same = members[first].first;
        for (; first < members.size() && members[first].first == same; ++first) part.add(members[first].second);
        row.log_odds += weigh(index(query), part.counts.data());
        row.odd_apart += part.odd();
      }
      if (row.log_odds > least) found.push_back(row);
    }
  }
  return found;
}

}  // namespace resolvent
