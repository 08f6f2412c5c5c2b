#include "row_likelihood.hpp"

#include <algorithm>

#include "arithmetic.hpp"

namespace resolvent {

RisingLog::RisingLog(double from) : from_(from), at_zero_(log_gamma(from)) {
  double sum = 0.0;
  for (double& each : table_) {
    each = sum;
    sum += natural_log(from + static_cast<double>(&each - table_.data()));
  }
}

double RisingLog::operator()(Id n) const {
  return index(n) < table_.size() ? table_[index(n)] : log_gamma(from_ + n) - at_zero_;
}

RowLikelihood::Rising::Rising(const NoiseShape& noise, Id outputs)
    : other(noise.strength * noise.share / outputs),
      main(noise.strength * noise.share / outputs + noise.strength * (1.0 - noise.share)) {}

RowLikelihood::RowLikelihood(const OutputCells& cells, const NoiseShape& noise)
    : cells_(cells), all_(noise.strength), rising_(cells.queries()), weight_(cells.size()), log_weight_(cells.size()) {
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    const Id outputs = cells.outputs(query);
    if (outputs < 2) continue;
    rising_[query] = &by_outputs_.try_emplace(outputs, noise, outputs).first->second;
    const double pooled = static_cast<double>(cells.total(query)) + 0.5 * outputs;
    for (auto cell = index(cells.first[query]); cell < index(cells.first[query + 1]); ++cell) {
      weight_[cell] = (static_cast<double>(cells.count[cell]) + 0.5) / pooled;
      log_weight_[cell] = natural_log(weight_[cell]);
    }
  }
}

double RowLikelihood::operator()(std::size_t query, const Id* counts) const {
  if (rising_[query] == nullptr) return 0.0;
  const Rising& logs = *rising_[query];
  const auto first = index(cells_.first[query]);
  const auto outputs = index(cells_.outputs(query));
  Id total_count = 0;
  double unseen = 1.0;  // prior probability of main outputs that the row never had
  double total = 0.0;
  // The sum over main outputs is `sum` times e^`most`, since its terms may overflow.
  double most = 0.0;
  double sum = 0.0;
  for (std::size_t at = 0; at < outputs; ++at) {
    if (counts[at] == 0) continue;
    total_count += counts[at];
    unseen -= weight_[first + at];
    const double other = logs.other(counts[at]);
    total += other;
    const double exponent = log_weight_[first + at] + logs.main(counts[at]) - other;
    if (exponent > most) {
      sum = sum * exponential(most - exponent) + 1.0;
      most = exponent;
    } else {
      sum += exponential(exponent - most);
    }
  }
  if (total_count == 0) return 0.0;
  sum += std::max(unseen, 0.0) * exponential(-most);
  return total + most + natural_log(sum) - all_(total_count);
}

}  // namespace resolvent
