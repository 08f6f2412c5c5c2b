// Evidence tree + a number of states → a machine that explains it, by simulated
// annealing over tables of transitions.
//
// Why it works: two states under the same labels soon fall together, so one wrong
// transition spoils only the few nodes after it, and nearly right tables have
// nearly all answers right. What falls is the length of a code for the answers,
// which rewards agreement, and not only the number of clashes, which does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "evidence_tree.hpp"
#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// The temperature, in nats, falls geometrically.
struct Cooling {
  std::int64_t evaluations;
  double hottest = 2.0;
  double coldest = 0.8;
};

// How many nats it takes to tell the tree's answers to someone who knows the
// machine, each (state, alpha) by a code that learns; nothing if two clash. Of two
// machines without clashes the shorter one explains more answers by others.
std::optional<double> code_length(const EvidenceTree& tree, std::span<const Id> table);

// A total table without clashes, or nothing when none was found. The same seed
// gives the same walk.
std::optional<std::vector<Id>> anneal(const EvidenceTree& tree, Id states, std::uint64_t seed, const Cooling& cooling,
                                      Pulse& pulse);

}  // namespace resolvent
