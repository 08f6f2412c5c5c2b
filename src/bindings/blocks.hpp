// Memory of large arrays, reused once they are freed: allocating the same pages again for each shard would
// take longer than filling them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "arrays.hpp"

class Blocks {
 public:
  struct Block {
    std::byte* data;
    std::size_t bytes;
  };

  // The process-wide blocks, which are never destroyed, since arrays may be freed after everything else.
  static Blocks& shared() {
    static auto* const blocks = new Blocks;
    return *blocks;
  }

  Block take(std::size_t bytes) {
    if (bytes >= small) {
      const std::scoped_lock lock(mutex_);
      for (std::size_t at = free_.size(); at-- > 0;) {
        if (free_[at].bytes < bytes || free_[at].bytes > 2 * bytes) continue;
        const Block block = free_[at];
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(at));
        saved_ -= block.bytes;
        return block;
      }
    }
    return {new std::byte[bytes], bytes};
  }

  void give_back(Block block) noexcept {
    if (block.bytes >= small) {
      const std::scoped_lock lock(mutex_);
      if (saved_ + block.bytes <= most_kept && free_.size() < free_.capacity()) {
        free_.push_back(block);
        saved_ += block.bytes;
        return;
      }
    }
    delete[] block.data;
  }

 private:
  static constexpr std::size_t small = std::size_t{1} << 18;
  static constexpr std::size_t most_kept = std::size_t{1} << 26;

  Blocks() { free_.reserve(64); }

  std::mutex mutex_;
  std::vector<Block> free_;
  std::size_t saved_ = 0;
};

// An array that is filled and then handed to Python.
class CodeBlock {
 public:
  explicit CodeBlock(std::size_t size) : block_(Blocks::shared().take(size * sizeof(Id))), size_(size) {}
  CodeBlock(const CodeBlock&) = delete;
  CodeBlock& operator=(const CodeBlock&) = delete;
  ~CodeBlock() {
    if (block_.data != nullptr) Blocks::shared().give_back(block_);
  }

  [[nodiscard]] std::span<Id> codes() const { return {data(), size_}; }

  // Needs the GIL; Python owns the block from then on.
  nb::object to_python() {
    auto* const owned = new Blocks::Block(block_);
    nb::capsule owner(owned, [](void* pointer) noexcept {
      auto* const block = static_cast<Blocks::Block*>(pointer);
      Blocks::shared().give_back(*block);
      delete block;
    });
    const nb::ndarray<nb::numpy, Id, nb::ndim<1>> array(data(), {size_}, owner);
    block_.data = nullptr;
    return nb::cast(array);
  }

 private:
  [[nodiscard]] Id* data() const { return reinterpret_cast<Id*>(block_.data); }

  Blocks::Block block_;
  std::size_t size_;
};
