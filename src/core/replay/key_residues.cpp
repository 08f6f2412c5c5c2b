#include "key_residues.hpp"

namespace resolvent {
namespace {

constexpr std::uint64_t modulus = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t low_31 = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t low_30 = (std::uint64_t{1} << 30) - 1;

std::uint64_t reduced(std::uint64_t number) {
  const std::uint64_t sum = (number & modulus) + (number >> 61);
  return sum >= modulus ? sum - modulus : sum;
}

// In halves of 31 bits, for not every compiler has a product of 128: 2^62 counts as 2 here.
std::uint64_t product(std::uint64_t one, std::uint64_t other) {
  const std::uint64_t high = one >> 31, low = one & low_31;
  const std::uint64_t other_high = other >> 31, other_low = other & low_31;
  const std::uint64_t between = low * other_high + high * other_low;
  return reduced(high * other_high * 2 + (between >> 30) + ((between & low_30) << 31) + low * other_low);
}

// SplitMix64: keys that are alike modulo 2^61 − 1 are so in one of the two polynomials alone.
std::uint64_t mixed(std::uint64_t key) {
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ULL;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBULL;
  return key ^ (key >> 31);
}

}  // namespace

std::pair<std::uint64_t, std::uint64_t> key_residues(std::span<const Row> keys, std::uint64_t base,
                                                     std::uint64_t other_base) {
  std::uint64_t one = 0;
  std::uint64_t other = 0;
  for (const Row signed_key : keys) {
    const auto key = static_cast<std::uint64_t>(signed_key);
    one = reduced(product(one, base) + reduced(key));
    other = reduced(product(other, other_base) + reduced(mixed(key)));
  }
  return {one, other};
}

}  // namespace resolvent
