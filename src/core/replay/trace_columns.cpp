#include "trace_columns.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace resolvent {
namespace {

constexpr std::uint64_t modulus = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t low_31 = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t low_30 = (std::uint64_t{1} << 30) - 1;

std::uint64_t reduced(std::uint64_t number) {
  const std::uint64_t sum = (number & modulus) + (number >> 61);
  return sum >= modulus ? sum - modulus : sum;
}

// Multiply in halves of 31 bits, since not every compiler has 128-bit products; 2^62 is 2 here.
std::uint64_t product(std::uint64_t first, std::uint64_t second) {
  const std::uint64_t high = first >> 31, low = first & low_31;
  const std::uint64_t second_high = second >> 31, second_low = second & low_31;
  const std::uint64_t between = low * second_high + high * second_low;
  return reduced(high * second_high * 2 + (between >> 30) + ((between & low_30) << 31) + low * second_low);
}

// SplitMix64: keys that are equal modulo 2^61 − 1 collide in one of the two polynomials only.
std::uint64_t mixed(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ULL;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBULL;
  return key ^ (key >> 31);
}

}  // namespace

std::vector<Row> trace_keys(const TraceColumns& traces, const ValueKeys& keys, unsigned threads) {
  std::vector<Row> out(traces.traces());
  const auto value = [](std::span<const Row> table, Id code) {
    return static_cast<std::uint64_t>(table[static_cast<std::size_t>(code)]);
  };
  const auto key_of = [&](Id number) {
    const OneTrace trace(traces, number);
    std::uint64_t key = static_cast<std::uint64_t>(trace.ended) + 1;
    for (std::size_t step = 0; step <= trace.steps; ++step) {
      std::uint64_t word = value(keys.observation, trace.observation[step]) ^ value(keys.label, trace.label[step]);
      if (step < trace.steps) {
        word ^= value(keys.action, trace.action[step]);
        for (std::size_t column = 0; column < keys.outputs.size(); ++column)
          word ^= value(keys.outputs[column], traces.outputs[column][trace.first + step]);
      }
      key = (key ^ word) * 0x9E3779B97F4A7C15ULL;
      key ^= key >> 32;
    }
    return static_cast<Row>(key >> 1);  // never negative, so that it sorts the same everywhere
  };
  const std::size_t parts = std::min(worth_while(traces.label.size(), threads), std::max<std::size_t>(1, out.size()));
  in_parallel(parts, [&](std::size_t part) {
    const std::size_t end = out.size() * (part + 1) / parts;
    for (std::size_t trace = out.size() * part / parts; trace < end; ++trace)
      out[trace] = key_of(static_cast<Id>(trace));
  });
  return out;
}

std::pair<std::uint64_t, std::uint64_t> key_residues(std::span<const Row> keys, std::uint64_t base,
                                                     std::uint64_t second_base) {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  for (const Row signed_key : keys) {
    const auto key = static_cast<std::uint64_t>(signed_key);
    first = reduced(product(first, base) + reduced(key));
    second = reduced(product(second, second_base) + reduced(mixed(key)));
  }
  return {first, second};
}

}  // namespace resolvent
