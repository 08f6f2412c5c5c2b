#include "tally.hpp"

#include <cstddef>

namespace resolvent {

Tally tally_outputs(std::span<const Id> alpha, std::span<const Id> output, std::size_t alphas) {
  Tally tally{std::vector<Id>(alphas, none), std::vector<Row>(alphas, 0), std::vector<std::uint8_t>(alphas, 0)};
  for (std::size_t row = 0; row < alpha.size(); ++row) {
    const auto at = static_cast<std::size_t>(alpha[row]);
    ++tally.count[at];
    if (tally.output[at] == none)
      tally.output[at] = output[row];
    else if (tally.output[at] != output[row])
      tally.varies[at] = 1;
  }
  return tally;
}

}  // namespace resolvent
