// Moves of a machine + all steps → where steps in the same state have different answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "samples.hpp"

namespace resolvent {

struct Clashes {
  Row count = 0;       // steps with another answer than the first one in the same state
  Row lost = 0;        // steps at which the machine is in no state, since a label led nowhere
  Row bad = none;      // the first step that clashes
  Row witness = none;  // the step that it clashes with
};

// The state of another machine at each step, below `states`; empty where there is none.
struct Beside {
  std::span<const Id> at;
  std::size_t states = 1;
};

// The steps of traces as machines are asked about them, again and again with other moves.
class AskedSteps {
 public:
  // `read` is the label before each step, or none; `query` is below `queries`; traces begin
  // at the offsets, of which the last is the end.
  AskedSteps(std::span<const Id> read, std::span<const Row> offsets, std::span<const Id> query,
             std::size_t queries)
      : read_(read), offsets_(offsets), query_(query), queries_(queries) {}

  // `transitions[state * labels + label]` is the next state, as in `walk_states`; `answer` is what
  // this machine should answer at each step. It stops when so many steps clash as are `enough`.
  Clashes clashes(std::span<const Id> transitions, Id labels, std::span<const Id> answer, const Beside& beside,
                  Row enough);

 private:
  // The first step with a key, and its answer.
  struct First {
    std::uint32_t trial;
    Id step;
    Id answer;
  };

  void forget(std::size_t keys);
  First first_with(std::size_t key, Id step, Id answer);

  std::span<const Id> read_;
  std::span<const Row> offsets_;
  std::span<const Id> query_;
  std::size_t queries_;
  // Entries of a table over all keys are of this trial if they bear its number, so that it need
  // not be cleared; where it would be large, there are only keys that occur.
  bool dense_ = true;
  std::uint32_t trial_ = 0;
  std::vector<First> first_;
  std::unordered_map<std::size_t, First> sparse_;
};

}  // namespace resolvent
