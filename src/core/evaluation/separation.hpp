// A machine's answers as the traces show them → for every pair of its states what
// tells them apart: a query, or labels to read first and then a query.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pulse.hpp"
#include "samples.hpp"

namespace resolvent {

// One entry for each state and query, by query and then by state.
struct Shown {
  std::span<const Id> query;
  std::span<const Id> state;
  std::span<const Id> output;
};

// `target[state * labels + label]` is the next state, or `none` where the label
// leads nowhere.
struct Leads {
  std::span<const Id> target;
  Id states;
  Id labels;
};

// Pairs are numbered (0, 1), (0, 2), … (1, 2), …: this is the number of a pair, in
// whichever order its states are given.
std::size_t pair_number(Id one, Id other, Id states);

// One entry for each pair. `depth` is how many labels have to be read, `none`
// where nothing tells the states apart; `label` is the first of them. What the two
// states that they lead to answer differently: how many queries, how often they
// were asked, and the entries of a witness, of the lower state and of the higher
// one. A witness has the fewest steps before it, then the first query.
struct Separations {
  std::vector<Id> depth;
  std::vector<Id> label;
  std::vector<Id> queries;
  std::vector<Row> support;
  std::vector<Id> lower;
  std::vector<Id> higher;
};

// `count` and `step` say of each entry how often it was seen, and after how many
// steps first.
Separations separate(const Shown& shown, std::span<const Row> count, std::span<const Row> step, const Leads& leads,
                     Pulse& pulse);

}  // namespace resolvent
