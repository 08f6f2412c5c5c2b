// Transitions of a machine + all steps → conflicts: steps in the same state with different outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "samples.hpp"

namespace resolvent {

struct StepConflicts {
  Row count = 0;       // steps whose output differs from that of the first step in the same state
  Row lost = 0;        // steps without a state, after a label without a transition
  Row bad = none;      // first conflicting step
  Row witness = none;  // the step that it conflicts with
};

// State of another machine at each step, below `states`; empty if there is no condition.
struct Condition {
  std::span<const Id> at;
  std::size_t states = 1;
};

// The steps of all traces, checked repeatedly against different transitions.
class QueriedSteps {
 public:
  // `read` is the label before each step, or none; `query` is below `queries`; `offsets` has the first step
  // of each trace and the end.
  QueriedSteps(std::span<const Id> read, std::span<const Row> offsets, std::span<const Id> query, std::size_t queries)
      : read_(read), offsets_(offsets), query_(query), queries_(queries) {}

  // `transitions` is as in `walk_states`, `output` is the observed output of each step. Stops after
  // `enough` conflicts.
  StepConflicts conflicts(std::span<const Id> transitions, Id labels, std::span<const Id> output,
                          const Condition& condition, Row enough);

 private:
  // The first step with a key, and its output.
  struct First {
    std::uint32_t trial;
    Id step;
    Id output;
  };

  void forget(std::size_t keys);
  First first_with(std::size_t key, Id step, Id output);

  std::span<const Id> read_;
  std::span<const Row> offsets_;
  std::span<const Id> query_;
  std::size_t queries_;
  // Entries of the dense table are valid if they have the current trial number, which saves clearing it. A
  // hash map replaces tables above `most_dense` keys.
  bool dense_ = true;
  std::uint32_t trial_ = 0;
  std::vector<First> first_;
  std::unordered_map<std::size_t, First> sparse_;
};

}  // namespace resolvent
