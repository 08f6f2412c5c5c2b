#include "annealing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

// SplitMix64: small, fast, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  Id below(Id bound) {
    return static_cast<Id>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }
  double unit() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1.0p-53; }

 private:
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31);
  }

  std::uint64_t state_;
};

// What it costs to tell a (state, alpha) one more answer, by how often it gave this
// one and how often any: the code of Krichevsky and Trofimov. Beyond the table's
// edge little changes.
class CodeLength {
 public:
  CodeLength() {
    for (std::size_t same = 0; same < edge; ++same)
      for (std::size_t all = same; all < edge; ++all)
        nats_[same][all] = -std::log((static_cast<double>(same) + 0.5) / (static_cast<double>(all) + 1.0));
  }

  [[nodiscard]] double of(std::uint32_t same, std::uint32_t all) const {
    if (all >= edge) {
      if (same == all) return nats_[edge - 1][edge - 1];
      same = static_cast<std::uint32_t>(std::uint64_t{same} * (edge - 1) / all);
      all = edge - 1;
    }
    return nats_[same][all];
  }

 private:
  static constexpr std::size_t edge = 64;
  double nats_[edge][edge] = {};
};

// What a table makes of the tree: the code length of all answers, and how many of
// them clash with one before. Length only grows on the way through the tree, so
// it is given up as soon as it is beyond what would be accepted.
class Reading {
 public:
  double length = 0;
  std::int64_t clashes = 0;

  Reading(const EvidenceTree& tree, Id states, Pulse& pulse)
      : tree_(tree),
        pulse_(pulse),
        state_(index(tree.size()), 0),
        same_(index(states) * index(tree.outputs)),
        all_(index(states) * index(tree.alphas)) {}

  void read(std::span<const Id> table, double limit) {
    std::ranges::fill(same_, 0);
    std::ranges::fill(all_, 0);
    length = 0;
    clashes = 0;
    for (std::size_t node = 0; node < state_.size() && length <= limit; ++node) {
      pulse_.beat();
      if (node > 0)
        state_[node] = table[index(state_[index(tree_.parent[node])]) * index(tree_.labels) + index(tree_.label[node])];
      const std::size_t outputs = index(state_[node]) * index(tree_.outputs);
      const std::size_t alphas = index(state_[node]) * index(tree_.alphas);
      for (auto at = tree_.first_answer[node]; at < tree_.first_answer[node + 1]; ++at) {
        std::uint32_t& same = same_[outputs + index(tree_.output[at])];
        std::uint32_t& all = all_[alphas + index(tree_.alpha[at])];
        length += code_.of(same, all);
        clashes += static_cast<std::int64_t>(same < all);
        ++same;
        ++all;
      }
    }
  }

 private:
  const EvidenceTree& tree_;
  Pulse& pulse_;
  CodeLength code_;
  std::vector<Id> state_;            // by node
  std::vector<std::uint32_t> same_;  // by state, alpha and output
  std::vector<std::uint32_t> all_;   // by state and alpha
};

}  // namespace

std::optional<double> code_length(const EvidenceTree& tree, std::span<const Id> table) {
  Pulse pulse(nullptr, 0);
  const auto states = tree.labels == 0 ? Id{1} : static_cast<Id>(table.size() / index(tree.labels));
  Reading reading(tree, states, pulse);
  reading.read(table, std::numeric_limits<double>::infinity());
  return reading.clashes == 0 ? std::optional(reading.length) : std::nullopt;
}

std::optional<std::vector<Id>> anneal(const EvidenceTree& tree, Id states, std::uint64_t seed, const Cooling& cooling,
                                      Pulse& pulse) {
  Random random(seed);
  Reading reading(tree, states, pulse);
  std::vector<Id> table(index(states) * index(tree.labels));
  for (Id& target : table) target = random.below(states);
  reading.read(table, std::numeric_limits<double>::infinity());
  if (reading.clashes == 0) return table;
  if (states == 1 || table.empty()) return std::nullopt;

  double length = reading.length;
  double temperature = cooling.hottest;
  const double factor = std::pow(cooling.coldest / cooling.hottest, 1.0 / static_cast<double>(cooling.evaluations));
  for (std::int64_t done = 0; done < cooling.evaluations; ++done, temperature *= factor) {
    Id& target = table[index(random.below(static_cast<Id>(table.size())))];
    const Id before = target;
    target = random.below(states - 1);
    if (target >= before) ++target;
    // Accepted with chance exp(-rise / temperature), the chance drawn first.
    const double limit = length - temperature * std::log(random.unit());
    reading.read(table, limit);
    if (reading.length > limit) {
      target = before;
      continue;
    }
    length = reading.length;
    if (reading.clashes == 0) return table;
  }
  return std::nullopt;
}

}  // namespace resolvent
