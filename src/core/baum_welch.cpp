#include "baum_welch.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace resolvent {

namespace {

class Expectation {
 public:
  Expectation(std::size_t layers, LayerTables<const double> probabilities, LayerTables<double> counts)
      : layers_(layers), probabilities_(probabilities), counts_(counts), later_(layers), earlier_(layers) {}

  double add(std::span<const Id> moves, bool paid) {
    const std::size_t onward = moves.size() - (paid ? 1 : 0);
    double log_likelihood = forward(moves.first(onward));
    later_.assign(layers_, 1.0);
    if (paid) log_likelihood += end(moves.back(), onward);
    backward(moves.first(onward));
    return log_likelihood;
  }

 private:
  // After it, row t of `forward_` is the layer distribution given what was seen
  // up to place t, and `scale_[t]` how probable move t was given all before it.
  double forward(std::span<const Id> moves) {
    forward_.assign((moves.size() + 1) * layers_, 0.0);
    scale_.resize(moves.size());
    forward_[0] = 1.0;
    double log_likelihood = 0.0;
    for (std::size_t at = 0; at < moves.size(); ++at) {
      const double* table = onward(moves[at]);
      const double* now = &forward_[at * layers_];
      double* next = &forward_[(at + 1) * layers_];
      for (std::size_t before = 0; before < layers_; ++before)
        for (std::size_t after = 0; after < layers_; ++after)
          next[after] += now[before] * table[before * layers_ + after];
      double total = 0.0;
      for (std::size_t after = 0; after < layers_; ++after) total += next[after];
      for (std::size_t after = 0; after < layers_; ++after) next[after] /= total;
      scale_[at] = total;
      log_likelihood += std::log(total);
    }
    return log_likelihood;
  }

  // The paid move: there is one layer after it, so it only tells of the one before.
  double end(Id move, std::size_t at) {
    const std::size_t entry = static_cast<std::size_t>(move) * layers_;
    const double* now = &forward_[at * layers_];
    double total = 0.0;
    for (std::size_t before = 0; before < layers_; ++before)
      total += now[before] * probabilities_.paid[entry + before];
    for (std::size_t before = 0; before < layers_; ++before) {
      later_[before] = probabilities_.paid[entry + before] / total;
      counts_.paid[entry + before] += now[before] * later_[before];
    }
    return std::log(total);
  }

  // `later_` is, by layer, how much likelier what is still to come is from there.
  void backward(std::span<const Id> moves) {
    for (std::size_t at = moves.size(); at-- > 0;) {
      const double* table = onward(moves[at]);
      double* count = &counts_.onward[static_cast<std::size_t>(moves[at]) * layers_ * layers_];
      const double* now = &forward_[at * layers_];
      for (std::size_t after = 0; after < layers_; ++after) later_[after] /= scale_[at];
      for (std::size_t before = 0; before < layers_; ++before) {
        double total = 0.0;
        for (std::size_t after = 0; after < layers_; ++after) {
          const double through = table[before * layers_ + after] * later_[after];
          count[before * layers_ + after] += now[before] * through;
          total += through;
        }
        earlier_[before] = total;
      }
      later_.swap(earlier_);
    }
  }

  [[nodiscard]] const double* onward(Id move) const {
    return &probabilities_.onward[static_cast<std::size_t>(move) * layers_ * layers_];
  }

  std::size_t layers_;
  LayerTables<const double> probabilities_;
  LayerTables<double> counts_;
  std::vector<double> forward_;
  std::vector<double> scale_;
  std::vector<double> later_;
  std::vector<double> earlier_;
};

}  // namespace

double expect(const Moves& moves, Id layers, LayerTables<const double> probabilities, LayerTables<double> counts) {
  Expectation expectation(static_cast<std::size_t>(layers), probabilities, counts);
  double log_likelihood = 0.0;
  for (std::size_t trace = 0; trace + 1 < moves.offsets.size(); ++trace) {
    const auto first = static_cast<std::size_t>(moves.offsets[trace]);
    const auto last = static_cast<std::size_t>(moves.offsets[trace + 1]);
    log_likelihood += expectation.add(moves.move.subspan(first, last - first), moves.paid[trace] != 0);
  }
  return log_likelihood;
}

}  // namespace resolvent
