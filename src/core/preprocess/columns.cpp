#include "columns.hpp"

#include <algorithm>

namespace resolvent {

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
  // Usually all codes occur early.
  constexpr std::size_t at_once = 4096;
  for (std::size_t from = 0; from < codes.size(); from += at_once) {
    for (const Id code : codes.subspan(from, std::min(at_once, codes.size() - from))) used[index(code)] = 1;
    if (size <= at_once && std::ranges::find(used, 0) == used.end()) break;
  }
  return used;
}

Pairs distinct_pairs(std::span<const Id> first, std::span<const Id> second, std::size_t firsts, std::size_t seconds) {
  Pairs pairs{{}, std::vector<Id>(first.size())};
  std::vector<Id> position(firsts * seconds, none);
  for (std::size_t row = 0; row < first.size(); ++row) {
    const std::size_t pair = index(first[row]) * seconds + index(second[row]);
    pairs.position[row] = static_cast<Id>(pair);
    position[pair] = 0;
  }
  for (std::size_t pair = 0; pair < position.size(); ++pair) {
    if (position[pair] == none) continue;
    position[pair] = static_cast<Id>(pairs.distinct.size());
    pairs.distinct.push_back(static_cast<Id>(pair));
  }
  for (Id& pair : pairs.position) pair = position[index(pair)];
  return pairs;
}

Numbered numbered(std::span<const Row> values) {
  Numbered result{{}, std::vector<Id>(values.size())};
  unsigned bits = 8;
  std::vector<Id> slots(std::size_t{1} << bits, none);  // open addressing; slots hold the numbers of values
  const auto slot_of = [&](Row value) {
    const std::size_t mask = slots.size() - 1;
    // The high half of the product depends on all bits of the value.
    auto at = static_cast<std::size_t>((static_cast<std::uint64_t>(value) * 0x9E3779B97F4A7C15ULL) >> (64 - bits));
    while (slots[at] != none && values[static_cast<std::size_t>(result.first[index(slots[at])])] != value)
      at = (at + 1) & mask;
    return at;
  };
  for (std::size_t row = 0; row < values.size(); ++row) {
    std::size_t at = slot_of(values[row]);
    if (slots[at] == none) {
      if (result.first.size() * 2 >= slots.size()) {
        slots.assign(std::size_t{1} << (bits += 2), none);
        for (std::size_t number = 0; number < result.first.size(); ++number)
          slots[slot_of(values[static_cast<std::size_t>(result.first[number])])] = static_cast<Id>(number);
        at = slot_of(values[row]);
      }
      slots[at] = static_cast<Id>(result.first.size());
      result.first.push_back(static_cast<Row>(row));
    }
    result.number[row] = slots[at];
  }
  return result;
}

void recode(std::span<const Id> codes, std::span<const Id> table, std::span<Id> out) {
  for (std::size_t row = 0; row < codes.size(); ++row) out[row] = codes[row] == none ? none : table[index(codes[row])];
}

}  // namespace resolvent
