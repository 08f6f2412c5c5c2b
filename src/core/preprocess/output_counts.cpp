#include "output_counts.hpp"

#include <cstddef>

namespace resolvent {

std::vector<std::int64_t> output_counts(const Steps& steps, std::span<const Id> table, Id states, Id outputs) {
  const auto width = static_cast<std::size_t>(states);
  std::vector<std::int64_t> counts(width * static_cast<std::size_t>(outputs));
  // Few sources change any state; skipping the others makes them nearly free.
  std::vector<char> transitions(table.size() / width);
  for (std::size_t at = 0; at < table.size(); ++at)
    if (static_cast<std::size_t>(table[at]) != at % width) transitions[at / width] = 1;
  for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
    std::size_t state = 0;
    for (auto at = static_cast<std::size_t>(steps.offsets[trace]);
         at < static_cast<std::size_t>(steps.offsets[trace + 1]); ++at) {
      const Id source = steps.source[at];
      if (source != none && transitions[static_cast<std::size_t>(source)] != 0)
        state = static_cast<std::size_t>(table[static_cast<std::size_t>(source) * width + state]);
      if (steps.output[at] != none)
        ++counts[state * static_cast<std::size_t>(outputs) + static_cast<std::size_t>(steps.output[at])];
    }
  }
  return counts;
}

std::vector<std::int64_t> output_counts_after(const Steps& steps, std::span<const Id> states, Id state, Id sources,
                                              Id outputs) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(sources) * static_cast<std::size_t>(outputs));
  std::vector<std::int64_t> read_in(static_cast<std::size_t>(sources),
                                    -1);  // last visit of the state in which each source was read
  std::vector<std::size_t> read;          // sources read in this visit
  std::int64_t stay = 0;
  for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
    Id before = 0;
    ++stay;
    read.clear();
    for (auto at = static_cast<std::size_t>(steps.offsets[trace]);
         at < static_cast<std::size_t>(steps.offsets[trace + 1]); ++at) {
      if (states[at] != before) {
        before = states[at];
        ++stay;
        read.clear();
      } else if (before == state && steps.source[at] != none) {
        const auto source = static_cast<std::size_t>(steps.source[at]);
        if (read_in[source] != stay) {
          read_in[source] = stay;
          read.push_back(source);
        }
      }
      if (before == state && steps.output[at] != none)
        for (const std::size_t source : read)
          ++counts[source * static_cast<std::size_t>(outputs) + static_cast<std::size_t>(steps.output[at])];
    }
  }
  return counts;
}

}  // namespace resolvent
