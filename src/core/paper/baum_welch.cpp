#include "baum_welch.hpp"

#include <cstddef>
#include <vector>

#include "arithmetic.hpp"

namespace resolvent {

namespace {

// The logarithm of a long product of numbers up to 1, computed rarely, since it is slow.
class LogOfProduct {
 public:
  void multiply(double factor) {
    product_ *= factor;
    if (product_ < 1e-200) {
      log_ += natural_log(product_);
      product_ = 1.0;
    }
  }

  [[nodiscard]] double value() const { return log_ + natural_log(product_); }

 private:
  double log_ = 0.0;
  double product_ = 1.0;
};

// The number of layers is a template argument, so that loops unroll; 0 stands for any number.
template <std::size_t Layers>
class Expectation {
 public:
  Expectation(std::size_t layers, LayerTables<const double> probabilities, LayerTables<double> counts)
      : any_layers_(layers), probabilities_(probabilities), counts_(counts), later_(layers), earlier_(layers) {}

  double add(std::span<const Id> steps, bool rewarded) {
    const std::size_t onward = steps.size() - (rewarded ? 1 : 0);
    double log_likelihood = forward(steps.first(onward));
    later_.assign(layers(), 1.0);
    if (rewarded) log_likelihood += end(steps.back(), onward);
    backward(steps.first(onward));
    return log_likelihood;
  }

 private:
  // Row t of `forward_` is the distribution of the layer after t steps, and `scale_[t]` one over the
  // probability of step t given all before it.
  double forward(std::span<const Id> steps) {
    forward_.assign((steps.size() + 1) * layers(), 0.0);
    scale_.resize(steps.size());
    forward_[0] = 1.0;
    LogOfProduct log_likelihood;
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const double* table = onward(steps[at]);
      const double* now = &forward_[at * layers()];
      double* next = &forward_[(at + 1) * layers()];
      for (std::size_t before = 0; before < layers(); ++before)
        for (std::size_t after = 0; after < layers(); ++after)
          next[after] += now[before] * table[before * layers() + after];
      double total = 0.0;
      for (std::size_t after = 0; after < layers(); ++after) total += next[after];
      const double inverse = 1.0 / total;
      for (std::size_t after = 0; after < layers(); ++after) next[after] *= inverse;
      scale_[at] = inverse;
      log_likelihood.multiply(total);
    }
    return log_likelihood.value();
  }

  // The rewarded step: it leads to a single layer, so it only updates the one before.
  double end(Id step, std::size_t at) {
    const std::size_t entry = static_cast<std::size_t>(step) * layers();
    const double* now = &forward_[at * layers()];
    double total = 0.0;
    for (std::size_t before = 0; before < layers(); ++before)
      total += now[before] * probabilities_.rewarded[entry + before];
    for (std::size_t before = 0; before < layers(); ++before) {
      later_[before] = probabilities_.rewarded[entry + before] / total;
      counts_.rewarded[entry + before] += now[before] * later_[before];
    }
    return natural_log(total);
  }

  // `later_` is the relative likelihood of the remaining steps by layer.
  void backward(std::span<const Id> steps) {
    for (std::size_t at = steps.size(); at-- > 0;) {
      const double* table = onward(steps[at]);
      double* count = &counts_.onward[static_cast<std::size_t>(steps[at]) * layers() * layers()];
      const double* now = &forward_[at * layers()];
      for (std::size_t after = 0; after < layers(); ++after) later_[after] *= scale_[at];
      for (std::size_t before = 0; before < layers(); ++before) {
        double total = 0.0;
        for (std::size_t after = 0; after < layers(); ++after) {
          const double through = table[before * layers() + after] * later_[after];
          count[before * layers() + after] += now[before] * through;
          total += through;
        }
        earlier_[before] = total;
      }
      later_.swap(earlier_);
    }
  }

  [[nodiscard]] std::size_t layers() const { return Layers == 0 ? any_layers_ : Layers; }

  [[nodiscard]] const double* onward(Id step) const {
    return &probabilities_.onward[static_cast<std::size_t>(step) * layers() * layers()];
  }

  std::size_t any_layers_;
  LayerTables<const double> probabilities_;
  LayerTables<double> counts_;
  std::vector<double> forward_;
  std::vector<double> scale_;
  std::vector<double> later_;
  std::vector<double> earlier_;
};

template <std::size_t Layers>
double expect_all(const LayerSteps& steps, Id layers, LayerTables<const double> probabilities,
                  LayerTables<double> counts) {
  Expectation<Layers> expectation(static_cast<std::size_t>(layers), probabilities, counts);
  double log_likelihood = 0.0;
  for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
    const auto first = static_cast<std::size_t>(steps.offsets[trace]);
    const auto last = static_cast<std::size_t>(steps.offsets[trace + 1]);
    log_likelihood += expectation.add(steps.step.subspan(first, last - first), steps.rewarded[trace] != 0);
  }
  return log_likelihood;
}

}  // namespace

double expect_layers(const LayerSteps& steps, Id layers, LayerTables<const double> probabilities,
                     LayerTables<double> counts) {
  switch (layers) {
    case 2:
      return expect_all<2>(steps, layers, probabilities, counts);
    case 3:
      return expect_all<3>(steps, layers, probabilities, counts);
    case 4:
      return expect_all<4>(steps, layers, probabilities, counts);
    case 5:
      return expect_all<5>(steps, layers, probabilities, counts);
    default:
      return expect_all<0>(steps, layers, probabilities, counts);
  }
}

}  // namespace resolvent
