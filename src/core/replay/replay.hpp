// Machines + traces → what the traces show of the machines: for every answer and
// every move how often it was seen and where first, and the answers that differ
// where a machine can give only one.
//
// A pure function of tables and columns, so shards of traces can be gone
// through anywhere, and what they show put together afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"
#include "trace_columns.hpp"

namespace resolvent {

// Step t of a trace reads its label number t - lag, if that is at least `first`.
struct Reading {
  Id first;
  Id lag;
};

// What a machine answers with: a column of `TraceColumns::outputs`, or one of these.
inline constexpr Id next_observation = -1;
inline constexpr Id whether_terminated = -2;

// `transitions[state * labels + label]` is the next state, or `none` where it was
// never seen. A supplemented machine is asked about observations paired with the
// state of the first machine.
struct ReplayedMachine {
  std::span<const Id> transitions;
  Id states;
  Id answers_with;
  bool supplemented;
};

struct Wanted {
  bool answers;         // what is asked and answered, and situations; without it only moves and states
  bool situations;      // how often each situation was met, and ended the episode
  bool unknown_states;  // count answers also where the state is not known, as those of state `none`
  bool earliest;        // for every answer and move, the place with the fewest steps before it too
  bool states;          // the state of every machine at every step
};

struct Place {
  Id trace = none;
  Id step = none;
};

struct Sighting {
  Id output = none;
  std::uint32_t count = 0;
  Place place;     // in the trace of lowest rank that showed it, where that first did
  Place earliest;  // the one with the fewest steps before it, if that was wanted
  Id rank = none;  // of the trace in which `place` is
};

struct AnswerSeen {
  Id state;
  std::int64_t query;
  Sighting seen;
};

struct MoveSeen {
  Id state;
  Id label;
  Sighting seen;  // `output` is the next state
};

struct MachineReplay {
  std::vector<AnswerSeen> answers;  // by state and query; `output` as some trace had it
  std::vector<AnswerSeen> clashes;  // other outputs of the same, by state, query and output
  std::vector<MoveSeen> moves;      // by state and label; a trace is left where a move has no target
  std::int64_t unasked = 0;         // steps at which the state that supplements it was not known
  std::vector<Id> states;           // at every step, `none` where not known; if that was wanted
};

// A situation is an observation, the states of all machines, and an action:
// ((observation * states of the first + its state) * states of the second + …) * actions + action.
struct Situation {
  std::int64_t number;
  std::int64_t count;
  std::int64_t ended;
};

struct Replay {
  std::vector<MachineReplay> machines;
  // By number. Where there is one machine, or a second that is supplemented, the answers of the
  // last say how often a situation was met: then only those are here in which a trace was
  // terminated, without a count.
  std::vector<Situation> situations;
};

// Whether situations are counted by the answers of the last machine.
bool answers_count_situations(std::span<const ReplayedMachine> machines);

// Replays traces through all machines. Of those that show the same, the one of lowest rank stands
// for all; without ranks that is the first. A query is
// observation * actions + action; to a supplemented machine an observation is
// observation * states of the first machine + its state.
Replay replay(const TraceColumns& traces, std::span<const Id> rank, Reading reading,
              std::span<const ReplayedMachine> machines, Wanted wanted, unsigned threads);

}  // namespace resolvent
