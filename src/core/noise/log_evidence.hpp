// How likely noisy answers are, given the machine whose states give them.
//
// A row is a state and a query. One of the k answers that the query ever had is its main
// answer, hidden, and drawn in advance with the shares w of the answers in all rows of the
// query. Given the main answer y, the answers of the row are Dirichlet-multinomial around
// strength * ((1 - share) [j = y] + share / k): most answers are the main one, and rows differ
// in how many are. Strength and share are those under which all answers are the most likely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "answer_cells.hpp"
#include "row_weights.hpp"
#include "samples.hpp"

namespace resolvent {

// Moves of a machine: state * labels + label → state, or none where a label is never read.
using Moves = std::vector<Id>;

struct MachineEvidence {
  double log_evidence = 0.0;  // of the answers and of the moves
  NoiseShape noise;
  std::vector<std::uint8_t> read;  // state * labels + label: whether it was ever read
};

// ln of how likely the moves are in advance: each that is read stays in its state with one
// unknown probability, and otherwise leads to any other state. States but the initial one have
// no names, so it counts all orders of them.
double log_moves(std::int64_t states, std::int64_t read, std::int64_t staying);

// ln of how likely all answers are. `counts` is [state, cell].
double log_answers(const AnswerCells& cells, std::span<const Id> counts, const NoiseShape& noise);

// The same for the noise that makes it greatest on a grid, climbing from `noise`, which is changed.
double fitted_log_answers(const AnswerCells& cells, std::span<const Id> counts, NoiseShape& noise);

// How often each state gave each answer: [state, cell]. Rows in no state (none) do not count.
std::vector<Id> count_answers(const AnswerCells& cells, std::span<const Id> state, Id states);

// Reads all labels with a machine and weighs all answers. `noise` is where fitting begins.
MachineEvidence weigh_machine(const AnswerCells& cells, const Labels& labels, const Moves& moves, Id states,
                              const NoiseShape& noise);

// The share of answers that are not the most frequent one of their row.
double share_off_main(const AnswerCells& cells, const Labels& labels, const Moves& moves, Id states);

}  // namespace resolvent
