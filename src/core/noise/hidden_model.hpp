// A machine whose state is not read off the labels, since those lie now and then, or since an
// episode may begin in any of several states: what is known of it, and what traces show of it.
//
// Before each answer a true label is read, which moves the state; recorded is a noisy copy. A true
// event is missed (recorded as "no event") or swapped for any other event; "no event" is recorded
// as some event, drawn by how frequent events are. "No event" leaves the state as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "answer_cells.hpp"
#include "hidden_moves.hpp"
#include "log_evidence.hpp"
#include "part_of_traces.hpp"
#include "samples.hpp"

namespace resolvent {

struct LabelNoise {
  double missed = 0.0;   // share of events recorded as "no event"
  double added = 0.0;    // share of "no event" recorded as an event
  double swapped = 0.0;  // share of events recorded as another one
};

// What may be hidden. `silence` is the code of "no event", or none.
struct HiddenKind {
  Id labels = 1;
  Id silence = none;
  bool labels_lie = true;
  bool random_starts = false;
};

// The answers to queries that have more than one: the others tell nothing of the state.
AnswerCells varying_answers(const Answers& answers);

// Traces as the expectation reads them. They stand in an order that follows from what is in them,
// so sums are the same in whatever order they come.
class HiddenRows {
 public:
  HiddenRows(const Answers& answers, const Labels& labels, const HiddenKind& kind, std::uint64_t seed);

  // From now on looks at the first traces alone that have so many rows together.
  void look_at(Row rows);

  [[nodiscard]] const HiddenKind& kind() const { return kind_; }
  [[nodiscard]] const AnswerCells& cells() const { return cells_; }
  [[nodiscard]] Steps steps() const {
    const auto rows = static_cast<std::size_t>(offsets_[traces_]);
    return {std::span(source_).first(rows), std::span(answer_).first(rows), std::span(offsets_).first(traces_ + 1)};
  }
  [[nodiscard]] const std::vector<double>& shares() const { return shares_; }
  [[nodiscard]] std::size_t traces() const { return traces_; }
  [[nodiscard]] Row all_rows() const { return offsets_.back(); }
  [[nodiscard]] bool looks_at_all() const { return traces_ + 1 == offsets_.size(); }
  // Rows with an answer, whether it tells something or not.
  [[nodiscard]] Row answered() const { return answered_; }

 private:
  HiddenKind kind_;
  AnswerCells cells_;         // of queries with more than one answer
  std::vector<Id> source_;    // the recorded label; `labels` where a trace begins
  std::vector<Id> answer_;    // cells
  std::vector<Row> offsets_;
  Row answered_ = 0;
  std::size_t traces_ = 0;      // that are looked at
  std::vector<double> shares_;  // of the recorded labels
};

struct HiddenModel {
  Id states = 1;
  std::vector<double> moves;    // [true label, before, after]
  std::vector<double> chances;  // [state, cell]: of answers
  std::vector<double> starts;   // by state
  std::vector<double> shares;   // of true labels
  LabelNoise labels;
  NoiseShape answers;
};

// How often things happened, as far as the traces tell.
struct HiddenCounts {
  double log_likelihood = 0.0;
  std::vector<double> moves;    // [true label, before, after]
  std::vector<double> answers;  // [state, cell]
  std::vector<double> starts;   // by state
  std::vector<double> labels;   // [recorded label, true label]
};

// How likely each true label is, given the recorded one: [recorded, true].
std::vector<double> true_label_chances(const HiddenKind& kind, const LabelNoise& noise, std::span<const double> shares);

HiddenCounts expect(const HiddenRows& rows, const HiddenModel& model);

// Takes the parameters that are likely given the counts. Moves stay as they are if `fixed_moves`.
void maximise(const HiddenRows& rows, const HiddenCounts& counts, bool fixed_moves, HiddenModel& model);

}  // namespace resolvent
