#include "table_rows.hpp"

#include <algorithm>
#include <cstdint>

namespace resolvent {
namespace {

// Return -1 if a row sorts before the previous one, 0 if they are equal, else 1.
int compared(std::span<const std::span<const Row>> columns, std::size_t row) {
  for (const auto& column : columns)
    if (column[row] != column[row - 1]) return column[row] < column[row - 1] ? -1 : 1;
  return 0;
}

// The usual case of one column each, in a loop without calls.
std::optional<std::vector<Row>> starts_of_two(std::span<const Row> episode, std::span<const Row> time) {
  std::vector<Row> starts{0};
  for (std::size_t row = 1; row < episode.size(); ++row) {
    if (episode[row] == episode[row - 1]) {
      if (time[row] <= time[row - 1]) return std::nullopt;
    } else {
      if (episode[row] < episode[row - 1]) return std::nullopt;
      starts.push_back(static_cast<Row>(row));
    }
  }
  return starts;
}

}  // namespace

std::optional<std::vector<Row>> starts_in_order(std::span<const std::span<const Row>> episode,
                                                std::span<const std::span<const Row>> time, std::size_t rows) {
  if (rows == 0) return std::vector<Row>{};
  if (episode.size() == 1 && time.size() == 1) return starts_of_two(episode[0], time[0]);
  std::vector<Row> starts{0};
  for (std::size_t row = 1; row < rows; ++row) {
    const int next = compared(episode, row);
    if (next < 0 || (next == 0 && !time.empty() && compared(time, row) <= 0)) return std::nullopt;
    if (next > 0) starts.push_back(static_cast<Row>(row));
  }
  return starts;
}

std::optional<std::vector<Row>> distinct_integers(std::span<const Row> numbers, std::size_t most, std::span<Id> codes) {
  std::vector<Row> distinct;
  if (numbers.empty()) return distinct;
  Row least = numbers.front();
  Row largest = least;
  for (const Row number : numbers) {
    least = std::min(least, number);
    largest = std::max(largest, number);
  }
  const std::uint64_t range = static_cast<std::uint64_t>(largest) - static_cast<std::uint64_t>(least);
  if (range >= most) return std::nullopt;
  std::vector<Id> code_of(static_cast<std::size_t>(range) + 1, none);
  // Usually all numbers of the range occur early.
  constexpr std::size_t at_once = 4096;
  for (std::size_t from = 0; from < numbers.size(); from += at_once) {
    for (const Row number : numbers.subspan(from, std::min(at_once, numbers.size() - from)))
      code_of[static_cast<std::size_t>(number - least)] = 0;
    if (range < at_once && std::ranges::find(code_of, none) == code_of.end()) break;
  }
  for (std::size_t at = 0; at < code_of.size(); ++at) {
    if (code_of[at] == none) continue;
    code_of[at] = static_cast<Id>(distinct.size());
    distinct.push_back(least + static_cast<Row>(at));
  }
  const Id* const table = code_of.data();
  std::ranges::transform(numbers, codes.begin(), [=](Row number) { return table[number - least]; });
  return distinct;
}

void recode_with_inserted(std::span<const Id> codes, std::span<const Id> table, std::span<const Row> at, Id inserted,
                          std::span<Id> out) {
  const auto value = [table = table.data()](Id code) { return table[code]; };
  auto from = codes.begin();
  auto to = out.begin();
  for (const Row position : at) {
    const auto until = codes.begin() + position;
    to = std::transform(from, until, to, value);
    *to++ = inserted;
    from = until;
  }
  std::transform(from, codes.end(), to, value);
}

}  // namespace resolvent
