// Prefix tree → automaton, by red-blue state merging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"
#include "watch.hpp"

namespace resolvent {

enum class Order : std::uint8_t {
  // The first blue state in shortlex order, into the first red state that it fits.
  rpni,
  // The pair with most agreeing outputs among the first `evidence_horizon` of its fold. A blue state that
  // fits no red state within the horizon is promoted first. Ties go to the earlier blue state, then to the
  // earlier red state.
  edsm,
  // As `edsm`, by the information in the agreeing outputs and the likelihood of the transition.
  likelihood,
  // As `likelihood`; then each merge is undone in turn, and the shorter description is kept.
  backtracking,
};

// Ranks merges as well as whole folds do, at little cost on large trees (docs/decisions/inference.md).
inline constexpr std::size_t evidence_horizon = 1024;

// Work limit of `backtracking`: for each try the nodes of the tree, and for each repeated decision the
// number of states.
inline constexpr std::int64_t backtracking_budget = 6'000'000;

struct Event {
  Id red;  // none: `blue` was promoted
  Id blue;
  std::int64_t score;   // number of outputs that agree
  std::int64_t folded;  // tree nodes merged away
};

struct Transition {
  Id state;
  Id label;
  Id target;
  Row count;  // number of times it was taken
};

struct StateOutput {
  Id state;
  Id alpha;
  Id output;
  Row count;  // number of observations
};

// States are numbered in order of promotion.
struct Automaton {
  std::vector<Id> access;               // the node of the prefix tree that became each state
  std::vector<Transition> transitions;  // by state, then label
  std::vector<StateOutput> outputs;     // by state, then alpha
  std::vector<Event> events;
  std::int64_t attempts = 0;  // number of folds tried
  std::int64_t wrong = 0;     // rows with another output, if the time limit was reached
  bool finished = true;       // false if the time limit was reached
};

// Thrown above `most_states`.
struct StateLimitExceeded {};

inline constexpr std::size_t unlimited_states = std::numeric_limits<std::size_t>::max();

// After the time limit, undecided nodes are merged by completion.hpp, and some rows may have wrong outputs.
Automaton merge_states(const PrefixTree& tree, Order order, Watch& watch, std::size_t most_states = unlimited_states);

// The same in the order `edsm`, but nullopt once there are more than `states` states after more than
// `attempts` folds.
std::optional<Automaton> merge_states_within(const PrefixTree& tree, Watch& watch, std::size_t states,
                                             std::int64_t attempts);

// Merge nodes with the same state in a known machine, blue states in shortlex order. `state_of` has the
// state of each node, below `tree.size()`.
Automaton merge_as(const PrefixTree& tree, std::span<const Id> state_of, Watch& watch);

}  // namespace resolvent
