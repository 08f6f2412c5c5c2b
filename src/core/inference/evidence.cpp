#include "evidence.hpp"

#include <algorithm>
#include <bit>

namespace resolvent {
namespace {

constexpr int share_digits = 20;  // shares are counted in 2^-20

// Adds one to a count in a table, where `none` stands for 0.
Id increment(Id& count) { return count = std::max(count, 0) + 1; }

std::int64_t width(std::size_t states) { return static_cast<std::int64_t>(std::bit_width(states)); }

}  // namespace

std::int64_t bits(std::uint64_t number) {
  const int whole = static_cast<int>(std::bit_width(number)) - 1;
  // Squaring doubles the logarithm: a carry is its next binary digit.
  std::uint64_t rest = whole <= 31 ? number << (31 - whole) : number >> (whole - 31);
  std::int64_t found = whole;
  for (int digit = 0; digit < 8; ++digit) {
    rest = (rest * rest) >> 31;
    found *= 2;
    if (rest >> 32 != 0) {
      rest >>= 1;
      ++found;
    }
  }
  return found;
}

Worth::Worth(const PrefixTree& tree) {
  PairMap asked;  // (alpha, 0): of how many nodes
  PairMap given;  // (alpha, output): by how many nodes
  for (const Answer answer : tree.answers) {
    increment(asked.at(answer.alpha, 0));
    if (increment(given.at(answer.alpha, answer.output)) == 1) increment(kinds_.at(answer.alpha, 0));
  }
  for (const Answer answer : tree.answers) {
    Id& worth = worth_.at(answer.alpha, answer.output);
    if (worth != none) continue;
    const std::int64_t all = asked.find(answer.alpha, 0) + kinds(answer.alpha) + 1;
    const std::int64_t these = given.find(answer.alpha, answer.output) + 1;
    worth = static_cast<Id>(bits(static_cast<std::uint64_t>(all)) - bits(static_cast<std::uint64_t>(these)));
  }
}

Habits::Count Habits::count(const PairMap& numbers, const std::vector<Count>& counts, Id label, Id lead) {
  const Id number = numbers.find(label, lead);
  return number == none ? Count{} : counts[index(number)];
}

Habits::Count& Habits::counted(PairMap& numbers, std::vector<Count>& counts, Id label, Id lead) {
  Id& number = numbers.at(label, lead);
  if (number == none) {
    number = static_cast<Id>(counts.size());
    counts.emplace_back();
  }
  return counts[index(number)];
}

std::int64_t Habits::favour(const Move& move, std::size_t states) const {
  constexpr std::int64_t all = std::int64_t{1} << share_digits;
  const Count label = count(label_numbers_, of_labels_, move.label, 0);
  const Count answer = count(answer_numbers_, of_answers_, move.label, move.lead);
  // How often it loops: what is known of label and answer, on top of what is of the label.
  const std::int64_t of_label = ((2 * label.loops + 1) << (share_digits - 1)) / (label.moves + 1);
  const std::int64_t loops =
      std::clamp<std::int64_t>(((answer.loops << share_digits) + of_label) / (answer.moves + 1), 1, all - 1);
  if (move.to == move.from)
    return bits(static_cast<std::uint64_t>(loops)) + (width(states) - share_digits) * one_bit;
  const Id number = answer_numbers_.find(move.label, move.lead);
  const Id known = number == none || move.to == none ? none : reached_.find(number, move.to);
  const std::uint64_t reached = static_cast<std::uint64_t>(std::max(known, 0)) << width(states);
  return bits(static_cast<std::uint64_t>(all - loops)) - share_digits * one_bit + bits(reached + 1) -
         bits(static_cast<std::uint64_t>(answer.moves - answer.loops) + 1);
}

std::int64_t Habits::cost(const Move& move, std::size_t states) const {
  return width(states) * one_bit - favour(move, states);
}

void Habits::see(const Move& move) {
  const bool loop = move.to == move.from;
  Count& label = counted(label_numbers_, of_labels_, move.label, 0);
  ++label.moves;
  label.loops += loop ? 1 : 0;
  Count& answer = counted(answer_numbers_, of_answers_, move.label, move.lead);
  ++answer.moves;
  answer.loops += loop ? 1 : 0;
  if (loop) return;
  increment(reached_.at(answer_numbers_.find(move.label, move.lead), move.to));
}

void AnswerCost::add(Answer answer) {
  const std::int64_t kinds = worth_.kinds(answer.alpha);
  const std::int64_t asked = increment(asked_.at(answer.alpha, 0));
  const std::int64_t before = increment(given_.at(answer.alpha, answer.output)) - 1;
  total_ += bits(static_cast<std::uint64_t>(kinds)) + bits(static_cast<std::uint64_t>(asked)) -
            bits(static_cast<std::uint64_t>(before * kinds + 1));
}

}  // namespace resolvent
