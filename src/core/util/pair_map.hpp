// A hash table from (state, symbol) to an id: open addressing, linear probing.
//
// Erasing writes `none` as the value and leaves the key in its slot, so that undo never changes a probe
// sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "samples.hpp"

namespace resolvent {

class PairMap {
 public:
  explicit PairMap(std::size_t expected = 16) { resize(expected); }

  [[nodiscard]] Id find(Id state, Id symbol) const {
    const std::uint64_t sought = key(state, symbol);
    for (std::size_t at = home_of(sought);; at = (at + 1) & mask_) {
      if (slots_[at].key == sought) return slots_[at].value;
      if (slots_[at].key == empty) return none;
    }
  }

  // Return a reference to the value, `none` if the pair is absent. It is valid until the next call.
  Id& at(Id state, Id symbol) {
    if (used_ * 4 >= slots_.size() * 3) resize(slots_.size());
    const std::uint64_t sought = key(state, symbol);
    std::size_t at = home_of(sought);
    while (slots_[at].key != sought) {
      if (slots_[at].key == empty) {
        slots_[at] = {sought, none};
        ++used_;
        break;
      }
      at = (at + 1) & mask_;
    }
    return slots_[at].value;
  }

  // The pair must be present.
  void erase(Id state, Id symbol) {
    const std::uint64_t sought = key(state, symbol);
    std::size_t at = home_of(sought);
    while (slots_[at].key != sought) at = (at + 1) & mask_;
    slots_[at].value = none;
  }

 private:
  struct Slot {
    std::uint64_t key;
    Id value;
  };

  static constexpr std::uint64_t empty = ~std::uint64_t{0};  // ids are never negative

  static std::uint64_t key(Id state, Id symbol) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(state)) << 32) | static_cast<std::uint32_t>(symbol);
  }

  [[nodiscard]] std::size_t home_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift_);
  }

  void resize(std::size_t expected) {
    unsigned bits = 4;
    while ((std::size_t{1} << bits) < expected * 2) ++bits;
    std::vector<Slot> old(std::size_t{1} << bits, Slot{empty, none});
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    shift_ = 64 - bits;
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.key == empty || slot.value == none) continue;
      std::size_t at = home_of(slot.key);
      while (slots_[at].key != empty) at = (at + 1) & mask_;
      slots_[at] = slot;
      ++used_;
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
  unsigned shift_ = 60;
};

}  // namespace resolvent
