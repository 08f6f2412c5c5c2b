// How sure it is where each move of a machine leads, given all its other moves.
#pragma once

#include <vector>

#include "answer_cells.hpp"
#include "log_evidence.hpp"
#include "samples.hpp"

namespace resolvent {

// The likeliest other target of a move, and ln of how many times as likely the one it has is.
struct Rival {
  Id target = none;  // none if the move is never read, or nothing was weighed
  double log_odds = 0.0;
};

// By move: state * labels + label. All traces that read a move are read anew with another target,
// for the three that answers up to the next label speak for most, and for staying. Labels that change no state
// anywhere are weighed only where they are read rarely. A move that only the other target would read is taken to stay.
std::vector<Rival> rival_moves(const AnswerCells& cells, const Labels& labels, const Moves& moves, Id states,
                               const NoiseShape& noise);

}  // namespace resolvent
