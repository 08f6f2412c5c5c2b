#include "log_evidence.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <utility>

#include "arithmetic.hpp"

namespace resolvent {
namespace {

constexpr std::array strengths{1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 3000.0, 10000.0};
constexpr std::array shares{0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07,
                            0.1,    0.15,   0.2,   0.25,  0.3,   0.35, 0.4,   0.5,  0.6,  0.7,  0.85};

// Read all labels with a machine: output counts by state, and the transitions read.
std::vector<Id> count_along(const OutputCells& cells, const Labels& labels, const Transitions& transitions, Id states,
                            std::vector<std::uint8_t>& read) {
  const std::size_t width = transitions.size() / index(states);
  std::vector<Id> counts(index(states) * cells.size());
  for (std::size_t trace = 0; trace + 1 < labels.offsets.size(); ++trace) {
    std::size_t state = 0;
    const auto end = static_cast<std::size_t>(labels.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(labels.offsets[trace]); row < end; ++row) {
      if (const Id label = labels.beta[row]; label != none) {
        const std::size_t entry = state * width + index(label);
        if (transitions[entry] == none) throw std::invalid_argument("a label is read that the machine has no move for");
        read[entry] = 1;
        state = index(transitions[entry]);
      }
      if (cells.of_row[row] != none) ++counts[state * cells.size() + index(cells.of_row[row])];
    }
  }
  return counts;
}

}  // namespace

double log_transitions(std::int64_t states, std::int64_t read, std::int64_t staying) {
  const auto moving = static_cast<double>(read - staying);
  const double shares_unknown = log_gamma(static_cast<double>(staying) + 1.0) + log_gamma(moving + 1.0) -
                                log_gamma(static_cast<double>(read) + 2.0);
  return shares_unknown - moving * natural_log(std::max<double>(static_cast<double>(states - 1), 1.0)) +
         log_gamma(static_cast<double>(states));
}

double log_outputs(const OutputCells& cells, std::span<const Id> counts, const NoiseShape& noise) {
  const std::size_t states = cells.size() == 0 ? 0 : counts.size() / cells.size();
  const RowLikelihood weigh(cells, noise);
  double total = 0.0;
  for (std::size_t query = 0; query < cells.queries(); ++query)
    for (std::size_t state = 0; state < states; ++state)
      total += weigh(query, &counts[state * cells.size() + index(cells.first[query])]);
  return total;
}

double fitted_log_outputs(const OutputCells& cells, std::span<const Id> counts, NoiseShape& noise) {
  std::map<std::pair<std::size_t, std::size_t>, double> values;
  const auto at = [&](std::size_t strength, std::size_t share) {
    const auto [entry, inserted] = values.try_emplace({strength, share}, 0.0);
    if (inserted) entry->second = log_outputs(cells, counts, {strengths[strength], shares[share]});
    return entry->second;
  };
  std::size_t strength = nearest(strengths, noise.strength);
  std::size_t share = nearest(shares, noise.share);
  double best = at(strength, share);
  for (bool climbed = true; climbed;) {
    climbed = false;
    const std::array<std::pair<std::size_t, std::size_t>, 4> neighbors{
        {{strength, share + 1}, {strength, share - 1}, {strength + 1, share}, {strength - 1, share}}};
    for (const auto& [next_strength, next_share] : neighbors) {
      if (next_strength >= strengths.size() || next_share >= shares.size()) continue;  // −1 wraps around
      if (const double value = at(next_strength, next_share); value > best) {
        best = value;
        strength = next_strength;
        share = next_share;
        climbed = true;
      }
    }
  }
  noise = {strengths[strength], shares[share]};
  return best;
}

std::vector<Id> count_outputs(const OutputCells& cells, std::span<const Id> state, Id states) {
  std::vector<Id> counts(index(states) * cells.size());
  for (std::size_t row = 0; row < state.size(); ++row)
    if (state[row] != none && cells.of_row[row] != none)
      ++counts[index(state[row]) * cells.size() + index(cells.of_row[row])];
  return counts;
}

MachineEvidence weigh_machine(const OutputCells& cells, const Labels& labels, const Transitions& transitions, Id states,
                              const NoiseShape& noise) {
  MachineEvidence evidence{0.0, noise, std::vector<std::uint8_t>(transitions.size())};
  const std::vector<Id> counts = count_along(cells, labels, transitions, states, evidence.read);
  std::int64_t read = 0;
  std::int64_t staying = 0;
  for (std::size_t entry = 0; entry < transitions.size(); ++entry) {
    if (evidence.read[entry] == 0) continue;
    ++read;
    staying += index(transitions[entry]) == entry / (transitions.size() / index(states));
  }
  evidence.log_evidence = fitted_log_outputs(cells, counts, evidence.noise) + log_transitions(states, read, staying);
  return evidence;
}

double deviating_share(const OutputCells& cells, const Labels& labels, const Transitions& transitions, Id states) {
  std::vector<std::uint8_t> read(transitions.size());
  const std::vector<Id> counts = count_along(cells, labels, transitions, states, read);
  std::int64_t all = 0;
  std::int64_t deviating = 0;
  for (std::size_t state = 0; state < index(states); ++state) {
    for (std::size_t query = 0; query < cells.queries(); ++query) {
      Id total = 0;
      Id main = 0;
      for (Id cell = cells.first[query]; cell < cells.first[query + 1]; ++cell) {
        total += counts[state * cells.size() + index(cell)];
        main = std::max(main, counts[state * cells.size() + index(cell)]);
      }
      all += total;
      deviating += total - main;
    }
  }
  return all == 0 ? 0.0 : static_cast<double>(deviating) / static_cast<double>(all);
}

}  // namespace resolvent
