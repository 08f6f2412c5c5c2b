// A machine for noisy answers: grown from one state by splitting, merged back, and weighed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "answer_cells.hpp"
#include "log_evidence.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

struct GrowthOptions {
  std::uint64_t seed = 0;
  double effort = 1.0;
  Id most_states = 40;
  Row part = 200'000;  // rows that machines are grown on; the one found is polished on all
  std::vector<std::uint8_t> quiet;  // by label: at first taken to change nothing
};

struct LikelyMachine {
  Moves moves;
  Id states = 1;
  MachineEvidence evidence{};
};

struct Growth {
  LikelyMachine best;
  std::map<Id, LikelyMachine> by_size;  // the likeliest that was met of each number of states
  double noise = 0.0;                   // share of answers off the main one, of the best machine
  bool finished = true;                 // false if time ran out
};

// What each state must be worth, in nats, by all machines that were met.
double price_of_state(const std::map<Id, LikelyMachine>& by_size);

// `time_limit` is in seconds, 0 for none. Labels must be below the size of `quiet`.
Growth grow_machine(const Answers& answers, const Labels& labels, const GrowthOptions& options,
                    Pulse::Listener listener, double time_limit);

}  // namespace resolvent
