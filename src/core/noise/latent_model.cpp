#include "latent_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "expected_outputs.hpp"

namespace resolvent {
namespace {

constexpr double pseudo_transitions = 0.05;  // pseudocount of each transition
constexpr double pseudo_starts = 0.05;
constexpr double pseudo_labels = 0.5;
constexpr double least_chance = 1e-12;

}  // namespace

OutputCells varying_outputs(const Outputs& outputs) {
  const OutputCells cells = number_outputs(outputs);
  return informative_outputs(cells, std::vector<std::uint8_t>(cells.size(), 1), 0.0, 0.0);
}

LatentRows::LatentRows(const Outputs& outputs, const Labels& labels, const LatentKind& kind, std::uint64_t seed)
    : kind_(kind), offsets_{0}, shares_(index(kind.labels)) {
  const Subsample part = subsample_traces(outputs, labels, labels.offsets.back(), seed);
  cells_ = varying_outputs(part.outputs());
  for (std::size_t trace = 0; trace + 1 < part.offsets.size(); ++trace) {
    if (kind.random_starts) {
      source_.push_back(kind.labels);
      output_.push_back(none);
    }
    const auto end = static_cast<std::size_t>(part.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(part.offsets[trace]); row < end; ++row) {
      const Id label = part.beta[row];
      if (label != none) ++shares_[index(label)];
      // A reliable "no event" label changes no state.
      source_.push_back(label == kind.silence && !kind.labels_lie ? none : label);
      output_.push_back(cells_.of_row[row]);
      output_rows_ += part.alpha[row] != none;
    }
    offsets_.push_back(static_cast<Row>(source_.size()));
  }
  traces_ = offsets_.size() - 1;
  const double read = std::max(std::accumulate(shares_.begin(), shares_.end(), 0.0), 1.0);
  for (double& share : shares_) share = (share + pseudo_labels) / (read + pseudo_labels * kind.labels);
}

void LatentRows::look_at(Row rows) {
  traces_ = 1;
  while (traces_ + 1 < offsets_.size() && offsets_[traces_] < rows) ++traces_;
}

std::vector<double> true_label_probabilities(const LatentKind& kind, const LabelNoise& noise,
                                             std::span<const double> shares) {
  const std::size_t labels = index(kind.labels);
  std::vector<double> probabilities(labels * labels);
  const auto is_silence = [&](std::size_t label) { return kind.silence != none && label == index(kind.silence); };
  double events = 0.0;
  for (std::size_t label = 0; label < labels; ++label)
    if (!is_silence(label)) events += shares[label];
  const auto others = static_cast<double>(std::max<Id>(kind.labels - (kind.silence == none ? 1 : 2), 1));
  for (std::size_t recorded = 0; recorded < labels; ++recorded) {
    double total = 0.0;
    for (std::size_t label = 0; label < labels; ++label) {
      double likely = 0.0;
      if (is_silence(label)) {
        likely =
            label == recorded ? 1.0 - noise.added : noise.added * shares[recorded] / std::max(events, least_chance);
      } else if (is_silence(recorded)) {
        likely = noise.missed;
      } else {
        likely = label == recorded ? 1.0 - noise.missed - noise.swapped : noise.swapped / others;
      }
      total += probabilities[recorded * labels + label] = shares[label] * likely;
    }
    for (std::size_t label = 0; label < labels; ++label) probabilities[recorded * labels + label] /= total;
  }
  return probabilities;
}

LatentCounts expect(const LatentRows& rows, const LatentModel& model) {
  const LatentKind& kind = rows.kind();
  const std::size_t labels = index(kind.labels);
  const std::size_t states = index(model.states);
  const std::size_t square = states * states;
  const std::size_t cells = rows.cells().size();
  const auto true_given = true_label_probabilities(kind, model.labels, model.shares);

  // Transition probabilities by recorded label, marginalized over the true label.
  std::vector<double> through((labels + 1) * square);
  for (std::size_t recorded = 0; recorded < labels; ++recorded)
    for (std::size_t label = 0; label < labels; ++label)
      for (std::size_t entry = 0; entry < square; ++entry)
        through[recorded * square + entry] +=
            true_given[recorded * labels + label] * model.transitions[label * square + entry];
  std::copy(model.starts.begin(), model.starts.end(), through.begin() + static_cast<std::ptrdiff_t>(labels * square));

  const std::vector<float> transitions(through.begin(), through.end());
  std::vector<float> outputs(cells * states);
  for (std::size_t cell = 0; cell < cells; ++cell)
    for (std::size_t state = 0; state < states; ++state)
      outputs[cell * states + state] = static_cast<float>(model.probabilities[state * cells + cell]);
  std::vector<double> expected_transitions(through.size());
  std::vector<double> expected_outputs(outputs.size());
  LatentCounts counts;
  counts.log_likelihood =
      expect_transitions(rows.steps(), model.states, {transitions, outputs}, {expected_transitions, expected_outputs});

  counts.outputs.resize(expected_outputs.size());
  for (std::size_t cell = 0; cell < cells; ++cell)
    for (std::size_t state = 0; state < states; ++state)
      counts.outputs[state * cells + cell] = expected_outputs[cell * states + state];
  counts.transitions.resize(labels * square);
  counts.labels.resize(labels * labels);
  for (std::size_t recorded = 0; recorded < labels; ++recorded)
    for (std::size_t label = 0; label < labels; ++label)
      for (std::size_t entry = 0; entry < square; ++entry) {
        if (through[recorded * square + entry] <= 0.0) continue;
        const double share = true_given[recorded * labels + label] * model.transitions[label * square + entry] /
                             through[recorded * square + entry];
        counts.transitions[label * square + entry] += share * expected_transitions[recorded * square + entry];
        counts.labels[recorded * labels + label] += share * expected_transitions[recorded * square + entry];
      }
  const auto started = expected_transitions.begin() + static_cast<std::ptrdiff_t>(labels * square);
  counts.starts.assign(started, started + static_cast<std::ptrdiff_t>(states));
  if (!kind.random_starts) counts.starts[0] = static_cast<double>(rows.traces());
  return counts;
}

namespace {

LabelNoise likely_label_noise(const LatentKind& kind, std::span<const double> counts) {
  const std::size_t labels = index(kind.labels);
  double events = 0.0;
  double missed = 0.0;
  double swapped = 0.0;
  double silent = 0.0;
  double added = 0.0;
  for (std::size_t recorded = 0; recorded < labels; ++recorded)
    for (std::size_t label = 0; label < labels; ++label) {
      const double count = counts[recorded * labels + label];
      const bool silence_recorded = static_cast<Id>(recorded) == kind.silence;
      if (static_cast<Id>(label) == kind.silence) {
        silent += count;
        added += silence_recorded ? 0.0 : count;
      } else {
        events += count;
        missed += silence_recorded ? count : 0.0;
        swapped += silence_recorded || recorded == label ? 0.0 : count;
      }
    }
  const auto share = [](double some, double all) { return std::min((some + 0.01) / (all + 1.0), 0.45); };
  const bool silences = kind.silence != none;
  return {silences ? share(missed, events) : 0.0, silences ? share(added, silent) : 0.0,
          kind.labels > (silences ? 2 : 1) ? share(swapped, events) : 0.0};
}

}  // namespace

void maximize(const LatentRows& rows, const LatentCounts& counts, bool fixed_transitions, LatentModel& model) {
  const LatentKind& kind = rows.kind();
  const std::size_t labels = index(kind.labels);
  const std::size_t states = index(model.states);
  const std::size_t cells = rows.cells().size();
  model.probabilities.clear();
  for (std::size_t state = 0; state < states; ++state) {
    const auto of_state = std::span(counts.outputs).subspan(state * cells, cells);
    const auto probabilities = output_probabilities(rows.cells(), of_state, model.outputs);
    model.probabilities.insert(model.probabilities.end(), probabilities.begin(), probabilities.end());
  }
  for (std::size_t row = 0; row < (fixed_transitions ? 0 : labels * states); ++row) {
    const auto first = counts.transitions.begin() + static_cast<std::ptrdiff_t>(row * states);
    const double total = std::accumulate(first, first + static_cast<std::ptrdiff_t>(states), 0.0);
    const bool silent = static_cast<Id>(row / states) == kind.silence;
    for (std::size_t after = 0; after < states; ++after)
      model.transitions[row * states + after] = silent
                                                    ? static_cast<double>(after == row % states)
                                                    : (first[static_cast<std::ptrdiff_t>(after)] + pseudo_transitions) /
                                                          (total + pseudo_transitions * model.states);
  }
  if (kind.random_starts) {
    const auto total_starts = static_cast<double>(rows.traces()) + pseudo_starts * model.states;
    for (std::size_t state = 0; state < states; ++state)
      model.starts[state] = (counts.starts[state] + pseudo_starts) / total_starts;
  }
  if (kind.labels_lie) {
    model.labels = likely_label_noise(kind, counts.labels);
    std::fill(model.shares.begin(), model.shares.end(), pseudo_labels);
    for (std::size_t pair = 0; pair < counts.labels.size(); ++pair) model.shares[pair % labels] += counts.labels[pair];
    const double all = std::accumulate(model.shares.begin(), model.shares.end(), 0.0);
    for (double& share : model.shares) share /= all;
  }
}

}  // namespace resolvent
