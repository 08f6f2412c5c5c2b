// Hidden Markov model of a machine whose labels are noisy, or whose episodes start in random states.
//
// Before each output, a true label is read, which changes the state; the recorded label is a noisy copy. A
// true event is missed (recorded as "no event") or swapped for any other event; "no event" is recorded as
// an event drawn by the frequency of events. "No event" does not change the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "latent_expectation.hpp"
#include "log_evidence.hpp"
#include "output_cells.hpp"
#include "samples.hpp"
#include "subsample.hpp"

namespace resolvent {

struct LabelNoise {
  double missed = 0.0;   // share of events recorded as "no event"
  double added = 0.0;    // share of "no event" recorded as an event
  double swapped = 0.0;  // share of events recorded as another event
};

// The latent variables. `silence` is the code of "no event", or none.
struct LatentKind {
  Id labels = 1;
  Id silence = none;
  bool labels_lie = true;
  bool random_starts = false;
};

// The outputs of queries with more than one output, which are the informative ones.
OutputCells varying_outputs(const Outputs& outputs);

// Traces for expectation maximization, in an order that depends on their content only, so that sums do not
// depend on the order of the input.
class LatentRows {
 public:
  LatentRows(const Outputs& outputs, const Labels& labels, const LatentKind& kind, std::uint64_t seed);

  // Use only the first traces with this number of rows together.
  void look_at(Row rows);

  [[nodiscard]] const LatentKind& kind() const { return kind_; }
  [[nodiscard]] const OutputCells& cells() const { return cells_; }
  [[nodiscard]] Steps steps() const {
    const auto rows = static_cast<std::size_t>(offsets_[traces_]);
    return {std::span(source_).first(rows), std::span(output_).first(rows), std::span(offsets_).first(traces_ + 1)};
  }
  [[nodiscard]] const std::vector<double>& shares() const { return shares_; }
  [[nodiscard]] std::size_t traces() const { return traces_; }
  [[nodiscard]] Row all_rows() const { return offsets_.back(); }
  [[nodiscard]] bool looks_at_all() const { return traces_ + 1 == offsets_.size(); }
  // Rows with an output, of any query.
  [[nodiscard]] Row output_rows() const { return output_rows_; }

 private:
  LatentKind kind_;
  OutputCells cells_;       // of queries with more than one output
  std::vector<Id> source_;  // recorded label; `labels` at the start of a trace
  std::vector<Id> output_;  // cells
  std::vector<Row> offsets_;
  Row output_rows_ = 0;
  std::size_t traces_ = 0;      // number of traces in use
  std::vector<double> shares_;  // of the recorded labels
};

struct LatentModel {
  Id states = 1;
  std::vector<double> transitions;    // [true label, before, after]
  std::vector<double> probabilities;  // [state, cell]: output probabilities
  std::vector<double> starts;         // by state
  std::vector<double> shares;         // of true labels
  LabelNoise labels;
  NoiseShape outputs;
};

// Expected counts.
struct LatentCounts {
  double log_likelihood = 0.0;
  std::vector<double> transitions;  // [true label, before, after]
  std::vector<double> outputs;      // [state, cell]
  std::vector<double> starts;       // by state
  std::vector<double> labels;       // [recorded label, true label]
};

// Probability of each true label given the recorded one: [recorded, true].
std::vector<double> true_label_probabilities(const LatentKind& kind, const LabelNoise& noise,
                                             std::span<const double> shares);

LatentCounts expect(const LatentRows& rows, const LatentModel& model);

// Update the parameters from expected counts; keep the transitions if `fixed_transitions`.
void maximize(const LatentRows& rows, const LatentCounts& counts, bool fixed_transitions, LatentModel& model);

}  // namespace resolvent
