// Traces as columns of codes, and hashes of traces by their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// Trace i owns steps offsets[i] .. offsets[i + 1] of `action` and of each column of `outputs`, and one more
// entry of `observation` and `label`, from offsets[i] + i on.
struct TraceColumns {
  std::span<const Id> observation;
  std::span<const Id> label;
  std::span<const Id> action;
  std::vector<std::span<const Id>> outputs;  // rewards and other columns with one entry per step
  std::span<const Row> offsets;
  std::span<const Id> ended;  // 1 if the trace was terminated, plus 2 if it was truncated
  Id observations = 0;        // number of codes
  Id labels = 0;
  Id actions = 0;

  [[nodiscard]] std::size_t traces() const { return offsets.size() - 1; }
};

// The columns of one trace.
struct OneTrace {
  Id number;
  std::size_t first;  // its first step among all steps
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

// Hashes of the values behind the codes of each column.
struct ValueKeys {
  std::span<const Row> observation;
  std::span<const Row> label;
  std::span<const Row> action;
  std::vector<std::span<const Row>> outputs;
};

// Return a hash of each trace that depends on its content only.
std::vector<Row> trace_keys(const TraceColumns& traces, const ValueKeys& keys, unsigned threads);

// Return two polynomial hashes modulo 2^61 − 1, of the keys and of the keys mixed once more: ((key · base +
// key) · base + key) … Hashes of consecutive parts can be combined.
std::pair<std::uint64_t, std::uint64_t> key_residues(std::span<const Row> keys, std::uint64_t base,
                                                     std::uint64_t second_base);

}  // namespace resolvent
