#include "row_weights.hpp"

#include <algorithm>

#include "elementary.hpp"

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

RowWeights::Rising::Rising(const NoiseShape& noise, Id answers)
    : other(noise.strength * noise.share / answers),
      main(noise.strength * noise.share / answers + noise.strength * (1.0 - noise.share)) {}

RowWeights::RowWeights(const AnswerCells& cells, const NoiseShape& noise)
    : cells_(cells), all_(noise.strength), rising_(cells.queries()), weight_(cells.size()), log_weight_(cells.size()) {
  for (std::size_t asked = 0; asked < cells.queries(); ++asked) {
    const Id answers = cells.answers(asked);
    if (answers < 2) continue;
    rising_[asked] = &by_answers_.try_emplace(answers, noise, answers).first->second;
    const double pooled = static_cast<double>(cells.asked(asked)) + 0.5 * answers;
    for (auto cell = index(cells.first[asked]); cell < index(cells.first[asked + 1]); ++cell) {
      weight_[cell] = (static_cast<double>(cells.count[cell]) + 0.5) / pooled;
      log_weight_[cell] = natural_log(weight_[cell]);
    }
  }
}

double RowWeights::operator()(std::size_t query, const Id* counts) const {
  if (rising_[query] == nullptr) return 0.0;
  const Rising& logs = *rising_[query];
  const auto first = index(cells_.first[query]);
  const auto answers = index(cells_.answers(query));
  Id given = 0;
  double unseen = 1.0;  // weight of main answers that the row never gave
  double total = 0.0;
  // The sum over main answers, of numbers that are too large to write down: `sum` times e to the `most`.
  double most = 0.0;
  double sum = 0.0;
  for (std::size_t at = 0; at < answers; ++at) {
    if (counts[at] == 0) continue;
    given += counts[at];
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
  if (given == 0) return 0.0;
  sum += std::max(unseen, 0.0) * exponential(-most);
  return total + most + natural_log(sum) - all_(given);
}

}  // namespace resolvent
