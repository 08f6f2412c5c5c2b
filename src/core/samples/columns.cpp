#include "columns.hpp"

#include <algorithm>

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

}  // namespace

Tally tally_outputs(std::span<const Id> alpha, std::span<const Id> output, std::size_t alphas) {
  Tally tally{std::vector<Id>(alphas, none), std::vector<Row>(alphas, 0), std::vector<std::uint8_t>(alphas, 0)};
  for (std::size_t row = 0; row < alpha.size(); ++row) {
    const std::size_t at = index(alpha[row]);
    ++tally.count[at];
    if (tally.output[at] == none)
      tally.output[at] = output[row];
    else if (tally.output[at] != output[row])
      tally.varies[at] = 1;
  }
  return tally;
}

std::vector<std::uint8_t> used_codes(std::span<const Id> codes, std::size_t size) {
  std::vector<std::uint8_t> used(size, 0);
  // All occur soon, mostly, and then there is no need to look any further.
  constexpr std::size_t at_once = 4096;
  for (std::size_t from = 0; from < codes.size(); from += at_once) {
    for (const Id code : codes.subspan(from, std::min(at_once, codes.size() - from))) used[index(code)] = 1;
    if (size <= at_once && std::ranges::find(used, 0) == used.end()) break;
  }
  return used;
}

Pairs distinct_pairs(std::span<const Id> first, std::span<const Id> second, std::size_t firsts, std::size_t seconds) {
  Pairs pairs{{}, std::vector<Id>(first.size())};
  std::vector<Id> place(firsts * seconds, none);
  for (std::size_t row = 0; row < first.size(); ++row) {
    const std::size_t pair = index(first[row]) * seconds + index(second[row]);
    pairs.place[row] = static_cast<Id>(pair);
    place[pair] = 0;
  }
  for (std::size_t pair = 0; pair < place.size(); ++pair) {
    if (place[pair] == none) continue;
    place[pair] = static_cast<Id>(pairs.distinct.size());
    pairs.distinct.push_back(static_cast<Id>(pair));
  }
  for (Id& pair : pairs.place) pair = place[index(pair)];
  return pairs;
}

void recode(std::span<const Id> codes, std::span<const Id> table, std::span<Id> out) {
  for (std::size_t row = 0; row < codes.size(); ++row)
    out[row] = codes[row] == none ? none : table[index(codes[row])];
}

}  // namespace resolvent
