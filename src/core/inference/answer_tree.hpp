// Prefix tree → the part of it that bears on any machine: nodes with an answer at
// or below them. And what a machine, given as a total table of transitions, makes
// of it. `table[state * labels + label]` is the next state; state 0 is initial.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

// Parents come before their children; node 0 is the root. The answers at node v:
// first_answer[v] .. first_answer[v + 1]. Alphas, and pairs of alpha and output,
// are numbered as they are first met.
struct AnswerTree {
  Id labels = 0;   // how many there are, met or not
  Id alphas = 0;
  Id outputs = 0;  // pairs of alpha and output
  std::vector<Id> parent;
  std::vector<Id> label;
  std::vector<std::size_t> first_answer;
  std::vector<Id> alpha;
  std::vector<Id> output;

  [[nodiscard]] Id size() const { return static_cast<Id>(parent.size()); }
};

AnswerTree evidence_of(const PrefixTree& tree, Id labels);

// The machine with its states numbered as the tree first meets them; states that
// it does not meet are gone, and `none` stands where it takes no transition. Two
// tables are the same machine on this tree if and only if these are equal.
std::vector<Id> settle(const AnswerTree& tree, std::span<const Id> table);

// The states of all nodes of a prefix tree under a settled table. A transition on
// which no answer depends leads to the initial state.
std::vector<Id> states_under(const HistoryTree& histories, std::span<const Id> table, Id labels);

// The first row that the machine cannot answer as the samples do, given what it
// answered before, and the first row that it clashes with.
struct Clash {
  Row first;
  Row second;
};
std::optional<Clash> first_clash(std::span<const Id> table, Id labels, const Labels& read, const Answers& answers);

}  // namespace resolvent
