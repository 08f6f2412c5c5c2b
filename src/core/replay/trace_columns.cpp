#include "trace_columns.hpp"

#include <algorithm>
#include <cstdint>

#include "parallel.hpp"

namespace resolvent {

std::vector<Row> trace_keys(const TraceColumns& traces, const ValueKeys& keys, unsigned threads) {
  std::vector<Row> out(traces.traces());
  const auto value = [](std::span<const Row> table, Id code) {
    return static_cast<std::uint64_t>(table[static_cast<std::size_t>(code)]);
  };
  const auto key_of = [&](Id number) {
    const OneTrace trace(traces, number);
    std::uint64_t key = static_cast<std::uint64_t>(trace.ended) + 1;
    for (std::size_t step = 0; step <= trace.steps; ++step) {
      std::uint64_t word = value(keys.observation, trace.observation[step]) ^ value(keys.label, trace.label[step]);
      if (step < trace.steps) {
        word ^= value(keys.action, trace.action[step]);
        for (std::size_t column = 0; column < keys.outputs.size(); ++column)
          word ^= value(keys.outputs[column], traces.outputs[column][trace.first + step]);
      }
      key = (key ^ word) * 0x9E3779B97F4A7C15ULL;
      key ^= key >> 32;
    }
    return static_cast<Row>(key >> 1);  // not negative, so that it sorts the same everywhere
  };
  const std::size_t parts = std::min(worth_while(traces.label.size(), threads), std::max<std::size_t>(1, out.size()));
  in_parallel(parts, [&](std::size_t part) {
    const std::size_t end = out.size() * (part + 1) / parts;
    for (std::size_t trace = out.size() * part / parts; trace < end; ++trace)
      out[trace] = key_of(static_cast<Id>(trace));
  });
  return out;
}

}  // namespace resolvent
