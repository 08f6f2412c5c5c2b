// Traces as columns of codes, and a number for each trace by what it holds.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// Trace i owns steps offsets[i] .. offsets[i + 1] of `action` and of each column of
// `outputs`, and one entry more of `observation` and `label`, from offsets[i] + i on.
struct TraceColumns {
  std::span<const Id> observation;
  std::span<const Id> label;
  std::span<const Id> action;
  std::vector<std::span<const Id>> outputs;  // rewards, and whatever else there is one of a step
  std::span<const Row> offsets;
  std::span<const Id> ended;  // 1 where the trace was terminated, plus 2 where it was truncated
  Id observations = 0;        // how many codes there are of each kind
  Id labels = 0;
  Id actions = 0;

  [[nodiscard]] std::size_t traces() const { return offsets.size() - 1; }
};

// One trace's share of the columns.
struct OneTrace {
  Id number;
  std::size_t first;  // its first step among those of all traces
  std::size_t steps;
  const Id* observation;
  const Id* label;
  const Id* action;
  Id ended;

  OneTrace(const TraceColumns& traces, Id trace)
      : number(trace),
        first(static_cast<std::size_t>(traces.offsets[static_cast<std::size_t>(trace)])),
        steps(static_cast<std::size_t>(traces.offsets[static_cast<std::size_t>(trace) + 1]) - first),
        observation(traces.observation.data() + first + trace),
        label(traces.label.data() + first + trace),
        action(traces.action.data() + first),
        ended(traces.ended[static_cast<std::size_t>(trace)]) {}

  [[nodiscard]] bool terminated() const { return (ended & 1) != 0; }
};

// Tables that give every code of a column a number which stands for its value.
struct ValueKeys {
  std::span<const Row> observation;
  std::span<const Row> label;
  std::span<const Row> action;
  std::vector<std::span<const Row>> outputs;
};

// A number for each trace that depends on nothing but what it holds.
std::vector<Row> trace_keys(const TraceColumns& traces, const ValueKeys& keys, unsigned threads);

}  // namespace resolvent
