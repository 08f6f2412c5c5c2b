#include "expected_outputs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "arithmetic.hpp"

namespace resolvent {
namespace {

constexpr double negligible = 1e-9;  // smaller counts are treated as 0

double rising_log(double from, double count) { return log_gamma(from + count) - log_gamma(from); }

// The outputs of a state for one query.
struct SoftRow {
  SoftRow(const OutputCells& cells, std::size_t query, std::span<const double> counts, const NoiseShape& noise)
      : first(index(cells.first[query])),
        other(noise.strength * noise.share / cells.outputs(query)),
        main(other + noise.strength * (1.0 - noise.share)) {
    const auto outputs = index(cells.outputs(query));
    const double pooled = static_cast<double>(cells.total(query)) + 0.5 * static_cast<double>(outputs);
    for (std::size_t at = 0; at < outputs; ++at) {
      const double count = counts[first + at];
      double exponent = natural_log((static_cast<double>(cells.count[first + at]) + 0.5) / pooled);
      if (count > negligible) {
        total_count += count;
        const double if_other = rising_log(other, count);
        log_others += if_other;
        exponent += rising_log(main, count) - if_other;
      }
      most = std::max(most, exponent);
      exponents.push_back(exponent);
    }
    for (double& each : exponents) sum += each = exponential(each - most);
  }

  std::size_t first;
  double other;
  double main;
  double total_count = 0.0;
  double log_others = 0.0;
  double most = -1e300;
  double sum = 0.0;
  std::vector<double> exponents;  // unnormalized probabilities of each output to be the main one
};

constexpr std::array strengths{1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 3000.0};
constexpr std::array shares{0.0002, 0.001, 0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7};

}  // namespace

double log_expected_outputs(const OutputCells& cells, std::span<const double> counts, const NoiseShape& noise) {
  double total = 0.0;
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    if (cells.outputs(query) < 2) continue;
    const SoftRow row(cells, query, counts, noise);
    if (row.total_count > negligible)
      total += row.log_others + row.most + natural_log(row.sum) - rising_log(noise.strength, row.total_count);
  }
  return total;
}

double fitted_log_expected_outputs(const OutputCells& cells, std::span<const double> counts, NoiseShape& noise) {
  const auto value = [&](std::size_t strength, std::size_t share) {
    double total = 0.0;
    for (std::size_t first = 0; first < counts.size(); first += cells.size())
      total += log_expected_outputs(cells, counts.subspan(first, cells.size()), {strengths[strength], shares[share]});
    return total;
  };
  std::size_t strength = nearest(strengths, noise.strength);
  std::size_t share = nearest(shares, noise.share);
  double best = value(strength, share);
  // Climb in one parameter at a time until neither improves.
  const auto climb = [&](std::size_t& at, std::size_t size) {
    bool climbed = false;
    for (const std::size_t by : {std::size_t{1}, static_cast<std::size_t>(-1)}) {
      while (at + by < size) {  // −1 wraps around
        at += by;
        const double other = value(strength, share);
        if (other <= best) {
          at -= by;
          break;
        }
        best = other;
        climbed = true;
      }
      if (climbed) break;
    }
    return climbed;
  };
  while (climb(share, shares.size()) || climb(strength, strengths.size())) {
  }
  noise = {strengths[strength], shares[share]};
  return best;
}

std::vector<double> output_probabilities(const OutputCells& cells, std::span<const double> counts,
                                         const NoiseShape& noise) {
  std::vector<double> probabilities(cells.size(), 1.0);
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    if (cells.outputs(query) < 2) continue;
    const SoftRow row(cells, query, counts, noise);
    for (std::size_t at = 0; at < row.exponents.size(); ++at) {
      const double is_main = row.exponents[at] / row.sum;
      probabilities[row.first + at] =
          (counts[row.first + at] + row.other + is_main * (row.main - row.other)) / (row.total_count + noise.strength);
    }
  }
  return probabilities;
}

}  // namespace resolvent
