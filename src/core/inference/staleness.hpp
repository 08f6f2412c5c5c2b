// Which scores a merge makes stale.
//
// A score comes from a fold that was undone. It holds until a state gains an output or child that the fold
// would have given it, or a blue state that was folded into changes. Small folds are watched for exactly
// that; watching large folds would take longer than repeating them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "folding.hpp"
#include "samples.hpp"

namespace resolvent {

class Staleness {
 public:
  static constexpr std::size_t watched_gains = 256;
  static constexpr std::size_t most_entries = std::size_t{1} << 21;  // about 100 MB

  struct Score {
    Id red;
    Id blue;
    std::int64_t stamp;  // distinguishes this score from later ones of the same pair
  };

  [[nodiscard]] static bool can_watch(const FoldingTree& folding) { return folding.gains() <= watched_gains; }

  // Recomputed scores leave entries behind. If there are too many, the caller clears them and treats all
  // scores as not watched.
  [[nodiscard]] bool full() const { return entries_ > most_entries; }
  void clear() {
    watchers_.clear();
    entries_ = 0;
  }

  // Watch the score of the last fold, before it is undone.
  void watch(const FoldingTree& folding, Score score) {
    folding.each_gain(
        [&](bool is_output, Id state, Id symbol) { put(key(is_output ? output : child, state, symbol), score); });
    folding.each_target([&](Id state) {
      if (folding.is_blue(state)) put(key(target, state, 0), score);
    });
  }

  // Visit the scores that a permanent fold makes stale. The scores of blue states that it folded into are
  // up to the caller.
  template <typename Visit>
  void merged(const FoldingTree& folding, Id blue, Visit visit) {
    if (watchers_.empty()) return;
    folding.each_gain(
        [&](bool is_output, Id state, Id symbol) { release(key(is_output ? output : child, state, symbol), visit); });
    release(key(target, blue, 0), visit);
  }

  // The children of a promoted state can now be merged separately.
  template <typename Visit>
  void promoted(Id blue, Visit visit) {
    release(key(target, blue, 0), visit);
  }

 private:
  enum Kind : std::uint64_t { output, child, target };

  static std::uint64_t key(Kind kind, Id state, Id symbol) {
    return (static_cast<std::uint64_t>(kind) << 62) | (static_cast<std::uint64_t>(state) << 31) |
           static_cast<std::uint64_t>(symbol);
  }

  void put(std::uint64_t key, const Score& score) {
    watchers_[key].push_back(score);
    ++entries_;
  }

  template <typename Visit>
  void release(std::uint64_t key, Visit visit) {
    const auto match = watchers_.find(key);
    if (match == watchers_.end()) return;
    for (const Score& score : match->second) visit(score);
    entries_ -= match->second.size();
    watchers_.erase(match);
  }

  std::unordered_map<std::uint64_t, std::vector<Score>> watchers_;
  std::size_t entries_ = 0;
};

}  // namespace resolvent
