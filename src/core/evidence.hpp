// Machines + traces → what the machines' tables rest on: for every answer and
// every move how often it was seen and in which trace first, and the answers
// that differ where the machine can give only one.
//
// A pure function of tables and columns, so shards of traces can be gone
// through anywhere and their evidence put together afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// Traces as codes. Trace i owns steps offsets[i] .. offsets[i + 1] of `action`
// and `reward`, and one entry more of `observation` and `label`, from
// offsets[i] + i on.
struct TraceColumns {
  std::span<const Id> observation;
  std::span<const Id> label;
  std::span<const Id> action;
  std::span<const Id> reward;
  std::span<const Row> offsets;
  std::span<const Id> ended;  // 1 where the trace was terminated, plus 2 where it was truncated
  Id observations;            // how many codes there are of each kind
  Id labels;
  Id actions;

  [[nodiscard]] std::size_t traces() const { return offsets.size() - 1; }
};

// A number for each trace that depends on nothing but what it holds. The tables
// give every code of a column a number that stands for its value.
struct ValueKeys {
  std::span<const Row> observation;
  std::span<const Row> label;
  std::span<const Row> action;
  std::span<const Row> reward;
};
std::vector<Row> trace_keys(const TraceColumns& traces, const ValueKeys& keys, unsigned threads);

// Step t of a trace reads its label number t - lag, if that is at least `first`.
struct Reading {
  Id first;
  Id lag;
};

// `transitions[state * labels + label]` is the next state, or `none` where it
// was never seen.
struct Table {
  std::span<const Id> transitions;
  Id states;
};

struct Seen {
  Id output = none;
  Id trace = none;  // the first that showed it, in the order gone through
  Id step = none;
  std::uint32_t count = 0;
};

struct SeenAnswer {
  Id state;
  std::int64_t question;
  Seen seen;
};

struct SeenMove {
  Id state;
  Id label;
  Seen seen;  // `output` is the next state
};

struct Evidence {
  std::vector<SeenAnswer> answers;  // by state and question; `output` as the first trace had it
  std::vector<SeenAnswer> clashes;  // other outputs of the same, by state, question and output
  std::vector<SeenMove> moves;      // by state and label; a trace is left where a move has no target
};

// A situation is a state of the Reward Machine and a question about an
// observation paired with the Transition Machine's state.
struct Situation {
  Id state;
  std::int64_t question;
  std::int64_t count;
  std::int64_t ended;
};

struct PairEvidence {
  Evidence transition;
  Evidence reward;
  // By state and question. Where the Reward Machine is supplemented, its answers say how often a
  // situation was met: then only those are here in which a trace was terminated, without a count.
  std::vector<Situation> situations;
  std::int64_t left = 0;           // traces that a machine could not follow to the end
};

// Replays traces, in the given order, through both machines. A question is
// observation * actions + action; to a supplemented Reward Machine, and in
// situations, an observation is observation * states of the Transition Machine + its state.
PairEvidence gather(const TraceColumns& traces, std::span<const Id> order, Reading reading, const Table& transition,
                    const Table& reward, bool supplemented, unsigned threads);

}  // namespace resolvent
