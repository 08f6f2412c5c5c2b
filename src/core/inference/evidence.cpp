#include "evidence.hpp"

#include <algorithm>
#include <bit>

namespace resolvent {
namespace {

constexpr int share_digits = 20;  // shares are counted in 2^-20

// Add one to a count; `none` stands for 0.
Id increment(Id& count) { return count = std::max(count, 0) + 1; }

std::int64_t width(std::size_t states) { return static_cast<std::int64_t>(std::bit_width(states)); }

}  // namespace

std::int64_t bits(std::uint64_t number) {
  const int whole = static_cast<int>(std::bit_width(number)) - 1;
  // Squaring doubles the logarithm: a carry is its next binary digit.
  std::uint64_t fraction = whole <= 31 ? number << (31 - whole) : number >> (whole - 31);
  std::int64_t logarithm = whole;
  for (int digit = 0; digit < 8; ++digit) {
    fraction = (fraction * fraction) >> 31;
    logarithm *= 2;
    if (fraction >> 32 != 0) {
      fraction >>= 1;
      ++logarithm;
    }
  }
  return logarithm;
}

OutputInformation::OutputInformation(const PrefixTree& tree) {
  PairMap nodes_of_alpha;   // (alpha, 0): number of nodes
  PairMap nodes_of_output;  // (alpha, output): number of nodes
  for (const Output output : tree.outputs) {
    increment(nodes_of_alpha.at(output.alpha, 0));
    if (increment(nodes_of_output.at(output.alpha, output.output)) == 1)
      increment(distinct_outputs_.at(output.alpha, 0));
  }
  for (const Output output : tree.outputs) {
    Id& information = information_.at(output.alpha, output.output);
    if (information != none) continue;
    const std::int64_t all = nodes_of_alpha.find(output.alpha, 0) + distinct_outputs(output.alpha) + 1;
    const std::int64_t these = nodes_of_output.find(output.alpha, output.output) + 1;
    information = static_cast<Id>(bits(static_cast<std::uint64_t>(all)) - bits(static_cast<std::uint64_t>(these)));
  }
}

TransitionModel::Count TransitionModel::count(const PairMap& numbers, const std::vector<Count>& counts, Id label,
                                              Id last_output) {
  const Id number = numbers.find(label, last_output);
  return number == none ? Count{} : counts[index(number)];
}

TransitionModel::Count& TransitionModel::count_of(PairMap& numbers, std::vector<Count>& counts, Id label,
                                                  Id last_output) {
  Id& number = numbers.at(label, last_output);
  if (number == none) {
    number = static_cast<Id>(counts.size());
    counts.emplace_back();
  }
  return counts[index(number)];
}

std::int64_t TransitionModel::gain(const Decision& decision, std::size_t states) const {
  constexpr std::int64_t all = std::int64_t{1} << share_digits;
  const Count label = count(label_numbers_, of_labels_, decision.label, 0);
  const Count output = count(output_numbers_, of_outputs_, decision.label, decision.last_output);
  // The share of loops for label and output; the share for the label alone is its prior.
  const std::int64_t of_label = ((2 * label.loops + 1) << (share_digits - 1)) / (label.transitions + 1);
  const std::int64_t loops =
      std::clamp<std::int64_t>(((output.loops << share_digits) + of_label) / (output.transitions + 1), 1, all - 1);
  if (decision.target == decision.source)
    return bits(static_cast<std::uint64_t>(loops)) + (width(states) - share_digits) * one_bit;
  const Id number = output_numbers_.find(decision.label, decision.last_output);
  const Id count = number == none || decision.target == none ? none : reached_.find(number, decision.target);
  const std::uint64_t reached = static_cast<std::uint64_t>(std::max(count, 0)) << width(states);
  return bits(static_cast<std::uint64_t>(all - loops)) - share_digits * one_bit + bits(reached + 1) -
         bits(static_cast<std::uint64_t>(output.transitions - output.loops) + 1);
}

std::int64_t TransitionModel::cost(const Decision& decision, std::size_t states) const {
  return width(states) * one_bit - gain(decision, states);
}

void TransitionModel::learn(const Decision& decision) {
  const bool loop = decision.target == decision.source;
  Count& label = count_of(label_numbers_, of_labels_, decision.label, 0);
  ++label.transitions;
  label.loops += loop ? 1 : 0;
  Count& output = count_of(output_numbers_, of_outputs_, decision.label, decision.last_output);
  ++output.transitions;
  output.loops += loop ? 1 : 0;
  if (loop) return;
  increment(reached_.at(output_numbers_.find(decision.label, decision.last_output), decision.target));
}

void OutputCost::add(Output output) {
  const std::int64_t distinct_outputs = information_.distinct_outputs(output.alpha);
  const std::int64_t nodes_of_alpha = increment(states_with_alpha_.at(output.alpha, 0));
  const std::int64_t before = increment(states_with_output_.at(output.alpha, output.output)) - 1;
  total_ += bits(static_cast<std::uint64_t>(distinct_outputs)) + bits(static_cast<std::uint64_t>(nodes_of_alpha)) -
            bits(static_cast<std::uint64_t>(before * distinct_outputs + 1));
}

}  // namespace resolvent
