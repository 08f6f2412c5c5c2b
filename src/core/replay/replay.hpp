// Machines + traces → counts and locations of all observed outputs and transitions, and conflicts between
// outputs.
//
// A pure function of tables and columns: shards can be replayed independently and their counts added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"
#include "trace_columns.hpp"

namespace resolvent {

// Step t of a trace reads label t - lag, if that is at least `first`.
struct Reading {
  Id first;
  Id lag;
};

// The output of a machine: a column of `TraceColumns::outputs`, or one of these.
inline constexpr Id next_observation = -1;
inline constexpr Id whether_terminated = -2;

// `transitions[state * labels + label]` is the next state, or `none`. The observation of a supplemented
// machine is paired with the state of the first machine.
struct ReplayedMachine {
  std::span<const Id> transitions;
  Id states;
  Id output_column;
  bool supplemented;
};

struct ReplayOptions {
  bool outputs;           // outputs and augmented states; otherwise only transitions and states
  bool augmented_states;  // counts of augmented states, and of those that end an episode
  bool unknown_states;    // also count outputs where the state is unknown, as of state `none`
  bool earliest;          // for each output and transition also the location with the fewest steps before it
  bool states;            // the state of each machine at each step
};

struct Location {
  Id trace = none;
  Id step = none;
};

struct Occurrence {
  Id output = none;
  std::uint32_t count = 0;
  Location location;  // the first one in the trace of lowest rank
  Location earliest;  // the one with the fewest steps before it, if requested
  Id rank = none;     // of the trace of `location`
};

struct OutputCount {
  Id state;
  std::int64_t query;
  Occurrence seen;
};

struct TransitionCount {
  Id state;
  Id label;
  Occurrence seen;  // `output` is the next state
};

struct MachineReplay {
  std::vector<OutputCount> outputs;          // by state and query; `output` is the first one
  std::vector<OutputCount> conflicts;        // other outputs, by state, query and output
  std::vector<TransitionCount> transitions;  // by state and label; a trace ends where a transition is missing
  std::int64_t unqueried = 0;                // steps at which the state of the first machine was unknown
  std::vector<Id> states;                    // at each step, `none` if unknown; if requested
};

// An augmented state is an observation, the states of all machines, and an action, numbered ((observation *
// states of the first + its state) * states of the second + …) * actions + action.
struct AugmentedState {
  std::int64_t number;
  std::int64_t count;
  std::int64_t ended;
};

struct Replay {
  std::vector<MachineReplay> machines;
  // By number. With one machine, or a supplemented second one, the outputs of the last machine have the
  // counts; then only augmented states that end an episode are listed, without a count.
  std::vector<AugmentedState> augmented_states;
};

// Whether augmented states are counted by the outputs of the last machine.
bool outputs_count_augmented_states(std::span<const ReplayedMachine> machines);

// Replay traces through all machines. The trace of lowest rank (without ranks, the first) stands for others
// with the same outputs. A query is observation * actions + action; for a supplemented machine, the
// observation is observation * states of the first machine + its state.
Replay replay(const TraceColumns& traces, std::span<const Id> rank, Reading reading,
              std::span<const ReplayedMachine> machines, ReplayOptions options, unsigned threads);

// Write the state at each row. `transitions[state * labels + label]` is the next state, or `none`; from
// there on the state is `none` until the trace ends. A `beta` of `none` reads nothing; one at or above
// `labels` leads to `none`.
void walk_states(std::span<const Id> transitions, Id labels, std::span<const Id> beta, std::span<const Row> offsets,
                 std::span<Id> states);

}  // namespace resolvent
