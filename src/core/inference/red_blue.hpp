// Prefix tree → automaton, by red-blue state merging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

enum class Order : std::uint8_t {
  // Blue states in shortlex order, each into the first red state that it fits.
  rpni,
  // The pair on which most answers agree, among the first `evidence_horizon`
  // that its fold looks at; any blue state that fits no red one as far as that
  // is promoted first. Ties go to the earlier blue, then to the earlier red.
  edsm,
  // The pair whose agreement tells most and whose move is most usual, as far as that
  // horizon; otherwise as `edsm`.
  telling,
  // The same, and then each merge is asked whether the machine is shorter without it.
  rethink,
};

// Far enough to rank merges as well as whole folds do, near enough that ranking
// costs little on large trees (docs/decisions/inference.md).
inline constexpr std::size_t evidence_horizon = 1024;

// How much is tried by `rethink` at most: for each try the nodes of the tree, and for each
// decision made anew the states that it chose among.
inline constexpr std::int64_t rethinking_budget = 6'000'000;

struct Event {
  Id red;   // none: `blue` was promoted
  Id blue;
  std::int64_t score;   // answers that agreed
  std::int64_t folded;  // tree nodes merged away
};

struct Transition {
  Id state;
  Id label;
  Id target;
  Row count;  // how often it was taken
};

struct Output {
  Id state;
  Id alpha;
  Id output;
  Row count;  // how often it was seen
};

// States are numbered in the order in which they were promoted.
struct Automaton {
  std::vector<Id> access;               // the tree node that each state began as
  std::vector<Transition> transitions;  // by state, then label
  std::vector<Output> outputs;          // by state, then alpha
  std::vector<Event> events;
  std::int64_t attempts = 0;  // folds tried
  std::int64_t wrong = 0;     // rows answered otherwise, where time ran out
  bool finished = true;       // false where it did
};

// Thrown when more states are found than somebody wants to know of.
struct TooManyStates {};

inline constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

// When time is up, what is left is settled cheaply (completion.hpp), and some rows may be
// answered wrongly.
Automaton merge_states(const PrefixTree& tree, Order order, Pulse& pulse, std::size_t most_states = any_number);

// The same in the order `edsm`, unless that takes long and leads nowhere: nothing
// once more than `states` are found by more than `attempts` folds.
std::optional<Automaton> merge_states_within(const PrefixTree& tree, Pulse& pulse, std::size_t states,
                                             std::int64_t attempts);

// Merges the nodes that a known machine takes to the same state: blue states in
// shortlex order. `state_of` gives the state of each node, below `tree.size()`.
Automaton merge_as(const PrefixTree& tree, std::span<const Id> state_of, Pulse& pulse);

}  // namespace resolvent
