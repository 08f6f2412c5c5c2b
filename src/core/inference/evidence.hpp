// Information in outputs and likelihood of transitions, the two parts of the score of the orders
// `likelihood` and `backtracking`. In 256ths of a bit, as integers, so that both engines agree to the last
// digit.
#pragma once

#include <cstdint>
#include <vector>

#include "pair_map.hpp"
#include "prefix_tree.hpp"
#include "samples.hpp"

namespace resolvent {

inline constexpr std::int64_t one_bit = 256;

// A lead over the second-best merge beyond which merges count as equally certain.
inline constexpr std::int64_t sure_enough = 5 * one_bit;

// Logarithm of a positive number, rounded down.
std::int64_t bits(std::uint64_t number);

// Information content of outputs: the rarer an output for its alpha, the higher. Each node counts once,
// however often it was visited.
class OutputInformation {
 public:
  explicit OutputInformation(const PrefixTree& tree);

  [[nodiscard]] std::int64_t of(Output output) const { return information_.find(output.alpha, output.output); }

  // Number of different outputs of an alpha.
  [[nodiscard]] std::int64_t distinct_outputs(Id alpha) const { return distinct_outputs_.find(alpha, 0); }

  // Outputs further from a merge are weaker evidence, since machines forget their past: two fifths less
  // with each label.
  static constexpr std::int64_t nearest = 1 << 16;
  static constexpr std::int64_t at_next_distance(std::int64_t weight) { return weight * 3 / 5; }

 private:
  PairMap information_;       // (alpha, output)
  PairMap distinct_outputs_;  // (alpha, 0)
};

// Distribution of transitions, learned from the decided ones: loops, or some targets more often than
// others. Labels are distinguished by the output just before them.
class TransitionModel {
 public:
  struct Decision {
    Id label;
    Id last_output;  // output just before the label
    Id source;
    Id target;  // none for a new state
  };

  // Log-likelihood ratio of a transition over a uniformly random target.
  [[nodiscard]] std::int64_t gain(const Decision& decision, std::size_t states) const;

  // Code length of a transition under the distribution so far.
  [[nodiscard]] std::int64_t cost(const Decision& decision, std::size_t states) const;

  void learn(const Decision& decision);

 private:
  struct Count {
    std::int64_t transitions = 0;
    std::int64_t loops = 0;
  };

  [[nodiscard]] static Count count(const PairMap& numbers, const std::vector<Count>& counts, Id label, Id last_output);
  static Count& count_of(PairMap& numbers, std::vector<Count>& counts, Id label, Id last_output);

  PairMap label_numbers_;   // (label, 0)
  PairMap output_numbers_;  // (label, last output)
  PairMap reached_;         // (number of label and last output, state): count
  std::vector<Count> of_labels_;
  std::vector<Count> of_outputs_;
};

// Code length of the outputs of all states; each output is coded by how often earlier states have it for
// the same alpha.
class OutputCost {
 public:
  explicit OutputCost(const OutputInformation& information) : information_(information) {}

  void add(Output output);
  [[nodiscard]] std::int64_t total() const { return total_; }

 private:
  const OutputInformation& information_;
  PairMap states_with_alpha_;   // (alpha, 0)
  PairMap states_with_output_;  // (alpha, output)
  std::int64_t total_ = 0;
};

}  // namespace resolvent
