// Machines for noisy outputs: grown from one state by splits and joins, and scored by evidence.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "log_evidence.hpp"
#include "output_cells.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

// The noise model is never exact, and its errors grow with the data: each state must gain this much
// evidence, and this share of the total gain.
inline constexpr double min_gain_of_state = 8.0;
inline constexpr double min_share_of_gain = 0.002;

struct GrowthOptions {
  std::uint64_t seed = 0;
  double effort = 1.0;
  Id most_states = 40;
  Row part = 200'000;               // rows to grow machines on; the best is refined on all
  std::vector<std::uint8_t> quiet;  // by label: assumed to be loops at first
};

struct ScoredMachine {
  Transitions transitions;
  Id states = 1;
  MachineEvidence evidence{};
};

struct Growth {
  ScoredMachine best;
  std::map<Id, ScoredMachine> by_size;  // the most likely machine by number of states
  double noise = 0.0;                   // share of deviating outputs of the best machine
  bool finished = true;                 // false if the time limit was reached
};

// Minimum gain in evidence per state, in nats.
double state_penalty(const std::map<Id, ScoredMachine>& by_size);

// `time_limit` is in seconds, 0 for none. Labels must be below the size of `quiet`.
Growth grow_machine(const Outputs& outputs, const Labels& labels, const GrowthOptions& options,
                    Watch::Listener listener, double time_limit);

}  // namespace resolvent
