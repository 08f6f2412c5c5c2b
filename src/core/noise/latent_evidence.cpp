#include "latent_evidence.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "arithmetic.hpp"
#include "expected_outputs.hpp"
#include "log_evidence.hpp"

namespace resolvent {
namespace {

std::size_t label_count(const LatentRows& rows) { return index(rows.kind().labels); }
std::size_t cell_count(const LatentRows& rows) { return rows.cells().size(); }

// Prior strength: label errors are as likely as if one in this number of labels had been wrong.
constexpr double seldom = 20.0;

// Log-likelihood ratio of `some` of `all` events under an unknown probability, against the fixed
// probability `taken`.
double unknown_share(double some, double all, double taken) {
  const double summed = log_gamma(some + 1.0) + log_gamma(all - some + seldom) - log_gamma(all + seldom + 1.0) -
                        log_gamma(seldom) + log_gamma(seldom + 1.0);
  return summed - some * natural_log(std::max(taken, 1e-12)) -
         (all - some) * log_one_plus(-std::min(taken, 1.0 - 1e-12));
}

double label_noise_evidence(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts) {
  double events = 0.0;
  double silent = 0.0;
  for (std::size_t pair = 0; pair < counts.labels.size(); ++pair)
    (static_cast<Id>(pair % label_count(rows)) == rows.kind().silence ? silent : events) += counts.labels[pair];
  double total = unknown_share(model.labels.swapped * events, events, model.labels.swapped);
  if (rows.kind().silence != none) {
    total += unknown_share(model.labels.missed * events, events, model.labels.missed);
    total += unknown_share(model.labels.added * silent, silent, model.labels.added);
  }
  return total;
}

}  // namespace

Id target(const LatentModel& model, std::size_t label, std::size_t state) {
  const std::size_t states = index(model.states);
  const auto first = model.transitions.begin() + static_cast<std::ptrdiff_t>((label * states + state) * states);
  return static_cast<Id>(std::max_element(first, first + model.states) - first);
}

double times_read(const LatentCounts& counts, std::size_t states, std::size_t label, std::size_t state) {
  const auto first = counts.transitions.begin() + static_cast<std::ptrdiff_t>((label * states + state) * states);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(states), 0.0);
}

std::vector<Id> reached(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts) {
  const std::size_t states = index(model.states);
  std::vector<Id> order;
  std::vector<std::uint8_t> known(states);
  for (std::size_t state = 0; state < states; ++state)
    if (counts.starts[state] >= half_read) order.push_back(static_cast<Id>(state));
  // With few traces, the expected number of starts may be below a half for every state; then the most
  // likely one counts.
  if (order.empty()) {
    const auto likeliest = std::max_element(counts.starts.begin(), counts.starts.end());
    order.push_back(static_cast<Id>(likeliest - counts.starts.begin()));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](Id first, Id second) { return counts.starts[index(first)] > counts.starts[index(second)]; });
  for (const Id state : order) known[index(state)] = 1;
  for (std::size_t at = 0; at < order.size(); ++at)
    for (std::size_t label = 0; label < label_count(rows); ++label) {
      const std::size_t state = index(order[at]);
      if (times_read(counts, states, label, state) < half_read) continue;
      const Id next = target(model, label, state);
      if (known[index(next)] == 0) order.push_back(next);
      known[index(next)] = 1;
    }
  return order;
}

double log_evidence(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts) {
  const std::size_t states = index(model.states);
  double total = counts.log_likelihood;
  for (std::size_t state = 0; state < states; ++state)
    total += log_expected_outputs(
        rows.cells(), std::span(counts.outputs).subspan(state * cell_count(rows), cell_count(rows)), model.outputs);
  for (std::size_t at = 0; at < counts.outputs.size(); ++at)
    if (counts.outputs[at] > 0.0) total -= counts.outputs[at] * natural_log(model.probabilities[at]);
  std::int64_t read = 0;
  std::int64_t staying = 0;
  for (std::size_t label = 0; label < label_count(rows); ++label) {
    for (std::size_t state = 0; state < states; ++state) {
      const bool silent = static_cast<Id>(label) == rows.kind().silence;
      if (!silent && times_read(counts, states, label, state) < half_read) continue;
      ++read;
      staying += index(target(model, label, state)) == state;
    }
  }
  total += log_transitions(model.states, read, staying);
  if (rows.kind().labels_lie) total += label_noise_evidence(rows, model, counts);
  if (rows.kind().random_starts) {
    total += log_gamma(static_cast<double>(states)) -
             log_gamma(static_cast<double>(states) + static_cast<double>(rows.traces()));
    for (std::size_t state = 0; state < states; ++state)
      total += log_gamma(1.0 + counts.starts[state]) -
               counts.starts[state] * natural_log(std::max(model.starts[state], 1e-300));
  }
  return total;
}

}  // namespace resolvent
