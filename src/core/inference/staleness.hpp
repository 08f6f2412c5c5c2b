// Which scores a merge makes stale.
//
// A score was counted on a fold that was taken back. It stays right until a state
// gains an answer or a child that the fold gave it as well, or a blue state that
// was folded into is no longer what it was. Small folds are watched for exactly
// that; large ones would take longer to watch than to fold again.
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
  static constexpr std::size_t most_entries = std::size_t{1} << 21;  // some 100 MB

  struct Score {
    Id red;
    Id blue;
    std::int64_t stamp;  // tells this score from later ones of the same pair
  };

  [[nodiscard]] static bool can_watch(const FoldingTree& folding) { return folding.gains() <= watched_gains; }

  // Scores that were counted anew leave entries behind. When there are too many,
  // the caller clears them, and takes every score as not watched.
  [[nodiscard]] bool full() const { return entries_ > most_entries; }
  void clear() {
    watchers_.clear();
    entries_ = 0;
  }

  // Watches the score of the fold just made, before it is undone.
  void watch(const FoldingTree& folding, Score score) {
    folding.each_gain([&](bool answered, Id state, Id symbol) {
      put(key(answered ? answer : child, state, symbol), score);
    });
    folding.each_target([&](Id state) {
      if (folding.is_blue(state)) put(key(target, state, 0), score);
    });
  }

  // Visits the scores that a fold, now kept, makes stale. The scores of blue
  // states that it folded into are for the caller to find.
  template <typename Visit>
  void merged(const FoldingTree& folding, Id blue, Visit visit) {
    if (watchers_.empty()) return;
    folding.each_gain([&](bool answered, Id state, Id symbol) {
      release(key(answered ? answer : child, state, symbol), visit);
    });
    release(key(target, blue, 0), visit);
  }

  // Its children can now be merged away on their own.
  template <typename Visit>
  void promoted(Id blue, Visit visit) {
    release(key(target, blue, 0), visit);
  }

 private:
  enum Kind : std::uint64_t { answer, child, target };

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
    const auto found = watchers_.find(key);
    if (found == watchers_.end()) return;
    for (const Score& score : found->second) visit(score);
    entries_ -= found->second.size();
    watchers_.erase(found);
  }

  std::unordered_map<std::uint64_t, std::vector<Score>> watchers_;
  std::size_t entries_ = 0;
};

}  // namespace resolvent
