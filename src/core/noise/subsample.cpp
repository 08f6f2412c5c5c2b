#include "subsample.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "random.hpp"

namespace resolvent {

Subsample subsample_traces(const Outputs& outputs, const Labels& labels, Row rows, std::uint64_t seed) {
  const std::size_t traces = labels.offsets.size() - 1;
  // Order traces by a hash of their content.
  std::vector<std::pair<std::uint64_t, std::size_t>> order(traces);
  for (std::size_t trace = 0; trace < traces; ++trace) {
    std::uint64_t mixed = seed;
    const auto end = static_cast<std::size_t>(labels.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(labels.offsets[trace]); row < end; ++row)
      for (const Id code : {labels.beta[row], outputs.alpha[row], outputs.output[row]})
        mixed = Random(mixed ^ static_cast<std::uint32_t>(code)).next();
    order[trace] = {mixed, trace};
  }
  std::sort(order.begin(), order.end());
  Subsample sample;
  for (const auto& [mixed, trace] : order) {
    const Row left = rows - sample.offsets.back();
    if (left <= 0) break;
    const Row first = labels.offsets[trace];
    const Row last = std::min(labels.offsets[trace + 1], first + left);
    const auto take = [&](std::vector<Id>& into, std::span<const Id> from) {
      into.insert(into.end(), from.begin() + first, from.begin() + last);
    };
    take(sample.alpha, outputs.alpha);
    take(sample.output, outputs.output);
    take(sample.beta, labels.beta);
    sample.offsets.push_back(sample.offsets.back() + last - first);
  }
  return sample;
}

}  // namespace resolvent
