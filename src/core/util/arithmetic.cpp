#include "arithmetic.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace resolvent {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts; the first has few enough digits that its product with any exponent is exact.
constexpr double ln2_first = 0x1.62e42fec00000p-1;
constexpr double ln2_rest = 0x1.d1cf79abc9e3bp-32;
constexpr double bits_in_nat = 0x1.71547652b82fep+0;

constexpr int mantissa_bits = 52;
constexpr int exponent_bias = 1023;
constexpr std::uint64_t mantissa_mask = (std::uint64_t{1} << mantissa_bits) - 1;

template <std::size_t Terms>
double polynomial(const std::array<double, Terms>& coefficients, double x) {
  double sum = coefficients[Terms - 1];
  for (std::size_t at = Terms - 1; at-- > 0;) sum = sum * x + coefficients[at];
  return sum;
}

// x = mantissa · 2^exponent, with a mantissa from √½ to √2; x is positive and finite.
struct Parts {
  double mantissa;
  double exponent;
};

Parts parts_of(double x) {
  double shift = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    shift = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> mantissa_bits) - exponent_bias;
  const auto one_to_two =
      std::bit_cast<double>((bits & mantissa_mask) | (static_cast<std::uint64_t>(exponent_bias) << mantissa_bits));
  constexpr double root_of_two = 0x1.6a09e667f3bcdp+0;
  if (one_to_two > root_of_two) return {one_to_two / 2, exponent + 1 + shift};
  return {one_to_two, exponent + shift};
}

// ln(1 + f) = 2 artanh(s) with s = f/(2 + f), and the series of artanh converges fast. The first term of 2s
// = f − f²/2 + s·f²/2 is exact, so that only the rest is rounded.
struct LogParts {
  double f;
  double half_square;  // f²/2
  double correction;   // ln(1 + f) = f − half_square + correction
};

LogParts log_parts(double mantissa) {
  // (2 artanh(s)/s − 2)/s², fitted from 0 to the largest s².
  constexpr std::array<double, 7> series = {0x1.5555555555558p-1, 0x1.99999999952d7p-2, 0x1.2492492df281ap-2,
                                            0x1.c71c62e3f11e6p-3, 0x1.7462b51cb66b1p-3, 0x1.39fe51a7c18f9p-3,
                                            0x1.2b5900de53b32p-3};
  const double f = mantissa - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const double half_square = 0.5 * f * f;
  return {f, half_square, s * (half_square + z * polynomial(series, z))};
}

// 2^exponent · x, for an integer exponent.
double scaled(double x, int exponent) {
  constexpr int least = -1000;
  if (exponent < least) return scaled(x * 0x1p-900, exponent + 900);
  if (exponent > -least) return scaled(x * 0x1p900, exponent - 900);
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + exponent_bias) << mantissa_bits);
}

// From here on, Stirling's series is precise enough.
constexpr double large = 12.0;

double stirling(double x) {
  constexpr double constant = 0x1.acfe390c97d69p-2;  // (ln 2π − 1) / 2
  constexpr std::array<double, 7> series = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                            1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  const double inverse = 1 / x;
  return (x - 0.5) * (natural_log(x) - 1) + (constant + inverse * polynomial(series, inverse * inverse));
}

// ln Γ(1 + x) from 0 to 2. It is 0 at 0 and 1: its ratio to x (x − 1) is fitted.
double log_gamma_after(double x) {
  constexpr std::array<double, 22> to_one = {
      0x1.eeb95b094c191p-2,  -0x1.2aed059bd608ap-3,  0x1.01af62a2929c0p-4,  -0x1.007aa83cee1acp-5,
      0x1.133423527f1f2p-6,  -0x1.34dbda14971e2p-7,  0x1.64f0664c4f943p-8,  -0x1.a5035232a7d25p-9,
      0x1.f814bab49d011p-10, -0x1.313e8a3ddad6fp-10, 0x1.750a7900f071ep-11, -0x1.cb44dee9fac00p-12,
      0x1.1c7e3a261c9ebp-12, -0x1.623f109df00eep-13, 0x1.b9e43433855c2p-14, -0x1.156abea920aefp-14,
      0x1.68f13e0fbb796p-15, -0x1.c85e4bc95846cp-16, 0x1.ba730a9784e07p-17, -0x1.18598e23bb974p-17,
      0x1.9759e019683d0p-17, -0x1.0467902760469p-17};
  constexpr std::array<double, 17> to_two = {0x1.84afe00cddfdfp-2,   -0x1.31d26e932300fp-4,  0x1.462044b0af66fp-6,
                                             -0x1.8a722dfc5e8b7p-8,  0x1.feef08b133995p-10,  -0x1.59511fff10c94p-11,
                                             0x1.e05c3c3939309p-13,  -0x1.5501ac6d32794p-14, 0x1.eb8f7679dae04p-16,
                                             -0x1.666fe83c397adp-17, 0x1.07c6f47198790p-18,  -0x1.87425c30165f5p-20,
                                             0x1.23d8f42f9b7aap-21,  -0x1.b0bcc001dae26p-23, 0x1.45cd99744a0f0p-24,
                                             -0x1.22d6fdd22620ep-25, 0x1.b9756a3c95d9ap-27};
  const double ratio = x < 1 ? polynomial(to_one, x - 0.5) : polynomial(to_two, x - 1.5);
  return x * (x - 1) * ratio;
}

}  // namespace

double natural_log(double x) {
  if (!(x > 0)) return x == 0 ? -infinity : undefined;
  if (x == infinity) return x;
  const auto [mantissa, exponent] = parts_of(x);
  const auto [f, half_square, correction] = log_parts(mantissa);
  return exponent * ln2_first - ((half_square - (correction + exponent * ln2_rest)) - f);
}

double binary_log(double x) {
  if (!(x > 0) || x == infinity) return natural_log(x);
  const auto [mantissa, exponent] = parts_of(x);
  const auto [f, half_square, correction] = log_parts(mantissa);
  return exponent + (f - (half_square - correction)) * bits_in_nat;
}

double log_one_plus(double x) {
  const double sum = 1 + x;
  if (sum == 1) return x;
  return natural_log(sum) * (x / (sum - 1));  // corrects for the rounding of the sum
}

double exponential(double x) {
  constexpr double largest = 709.79;
  constexpr double least = -745.14;
  if (x > largest) return infinity;
  if (x < least) return 0;
  if (!(x == x)) return x;
  // With R = r (eʳ + 1) / (eʳ − 1), even in r, eʳ = 1 + 2r / (R − r). This is (R − 2) / r², fitted
  // from 0 to (ln 2 / 2)².
  constexpr std::array<double, 5> series = {0x1.5555555555553p-3, -0x1.6c16c16c0abf9p-9, 0x1.1566ab5c1473dp-14,
                                            -0x1.bbd532227cf4dp-20, 0x1.63f27409701ecp-25};
  const double exponent = std::floor(x * bits_in_nat + 0.5);
  const double first = x - exponent * ln2_first;
  const double rest = exponent * ln2_rest;
  const double r = first - rest;
  const double z = r * r;
  const double c = r - z * polynomial(series, z);
  return scaled(1 - ((rest - r * c / (2 - c)) - first), static_cast<int>(exponent));
}

double power(double base, double exponent) { return exponential(exponent * natural_log(base)); }

double log_gamma(double x) {
  if (!(x > 0)) return x == 0 ? infinity : undefined;
  if (x == infinity) return x;
  if (x >= large) return stirling(x);
  if (x < 1) return log_gamma_after(x) - natural_log(x);
  double product = 1;
  while (x >= 3) {
    x -= 1;
    product *= x;
  }
  return product == 1 ? log_gamma_after(x - 1) : natural_log(product) + log_gamma_after(x - 1);
}

std::vector<double> product(std::span<const double> left, std::span<const double> right, std::size_t inner) {
  const std::size_t rows = left.size() / inner;
  const std::size_t columns = right.size() / inner;
  std::vector<double> values(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    double* const sums = values.data() + row * columns;
    for (std::size_t at = 0; at < inner; ++at) {
      const double factor = left[row * inner + at];
      const double* const summands = right.data() + at * columns;
      for (std::size_t column = 0; column < columns; ++column) sums[column] += factor * summands[column];
    }
  }
  return values;
}

}  // namespace resolvent
