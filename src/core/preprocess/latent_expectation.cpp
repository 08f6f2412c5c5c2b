#include "latent_expectation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "arithmetic.hpp"
#include "parallel.hpp"

namespace resolvent {

namespace {

constexpr float least = 1e-30F;  // lower limit of probabilities, so that impossible outputs do not divide by zero

// The number of parts is fixed, so that sums are the same on all processors.
constexpr std::size_t parts = 2;

// Tables are padded to `Width` states, which are never reached, so that loops unroll.
template <std::size_t Width>
class Expectation {
 public:
  using States = std::array<float, Width>;

  Expectation(const Steps& steps, std::size_t states, std::span<const States> transitions,
              std::span<const States> outputs)
      : steps_(steps),
        states_(states),
        transitions_(transitions),
        outputs_(outputs),
        transition_counts_(transitions.size() * Width),
        output_counts_(outputs.size() * Width) {}

  void add(std::size_t first, std::size_t last) {
    if (first == last) return;
    forward(first, last);
    backward(first, last);
  }

  void add_to(LatentTables<double> counts) const {
    for (std::size_t row = 0; row < counts.transitions.size() / states_; ++row)
      for (std::size_t after = 0; after < states_; ++after)
        counts.transitions[row * states_ + after] +=
            transition_counts_[(row / states_ * Width + row % states_) * Width + after];
    for (std::size_t output = 0; output < outputs_.size(); ++output)
      for (std::size_t state = 0; state < states_; ++state)
        counts.outputs[output * states_ + state] += output_counts_[output * Width + state];
  }

  [[nodiscard]] double log_likelihood() const { return log_likelihood_; }

 private:
  void forward(std::size_t first, std::size_t last) {
    reached_.resize(last - first + 1);
    reached_[0] = {};
    reached_[0][0] = 1.0F;
    for (std::size_t at = first; at < last; ++at) {
      const States& now = reached_[at - first];
      States next = now;
      if (steps_.source[at] != none) {
        const States* rows = &transitions_[static_cast<std::size_t>(steps_.source[at]) * Width];
        next = {};
        for (std::size_t before = 0; before < Width; ++before)
          for (std::size_t after = 0; after < Width; ++after) next[after] += now[before] * rows[before][after];
      }
      if (steps_.output[at] != none) {
        const States& likely = outputs_[static_cast<std::size_t>(steps_.output[at])];
        for (std::size_t state = 0; state < Width; ++state) next[state] *= likely[state];
        const float total = std::max(sum(next), least);
        log_likelihood_ += natural_log(static_cast<double>(total));
        for (float& share : next) share /= total;
      }
      reached_[at - first + 1] = next;
    }
  }

  void backward(std::size_t first, std::size_t last) {
    States later;
    later.fill(1.0F);
    for (std::size_t at = last; at-- > first;) {
      if (steps_.output[at] != none)
        count_output(static_cast<std::size_t>(steps_.output[at]), reached_[at - first + 1], later);
      if (steps_.source[at] != none)
        count_transition(static_cast<std::size_t>(steps_.source[at]), reached_[at - first], later);
    }
  }

  // Count an output, and multiply its likelihood into `later`.
  void count_output(std::size_t output, const States& reached, States& later) {
    States share;
    for (std::size_t state = 0; state < Width; ++state) share[state] = reached[state] * later[state];
    const float total = std::max(sum(share), least);
    double* count = &output_counts_[output * Width];
    for (std::size_t state = 0; state < Width; ++state) count[state] += static_cast<double>(share[state] / total);
    weigh_in(output, later);
  }

  void weigh_in(std::size_t output, States& later) const {
    const States& likely = outputs_[output];
    for (std::size_t state = 0; state < Width; ++state) later[state] *= likely[state];
    scale(later);
  }

  void count_transition(std::size_t source, const States& reached, States& later) {
    const States* rows = &transitions_[source * Width];
    double* count = &transition_counts_[source * Width * Width];
    States earlier;
    float total = 0.0F;
    for (std::size_t before = 0; before < Width; ++before) {
      States through;
      for (std::size_t after = 0; after < Width; ++after) through[after] = rows[before][after] * later[after];
      earlier[before] = sum(through);
      total += reached[before] * earlier[before];
    }
    total = std::max(total, least);
    float most = least;
    for (std::size_t before = 0; before < Width; ++before) {
      const float share = reached[before] / total;
      if (share > 1e-7F)
        for (std::size_t after = 0; after < Width; ++after)
          count[before * Width + after] += static_cast<double>(share * rows[before][after] * later[after]);
      most = std::max(most, earlier[before]);
    }
    for (std::size_t before = 0; before < Width; ++before) later[before] = earlier[before] / most;
  }

  static void scale(States& later) {
    const float most = std::max(*std::max_element(later.begin(), later.end()), least);
    for (float& each : later) each /= most;
  }

  static float sum(const States& states) {
    float total = 0.0F;
    for (const float each : states) total += each;
    return total;
  }

  Steps steps_;
  std::size_t states_;
  std::span<const States> transitions_;
  std::span<const States> outputs_;
  std::vector<double> transition_counts_;
  std::vector<double> output_counts_;
  std::vector<States> reached_;  // entry t: distribution of the state after t steps, given the outputs so far
  double log_likelihood_ = 0.0;
};

template <std::size_t Width>
struct PaddedTables {
  using States = typename Expectation<Width>::States;

  PaddedTables(std::size_t states, LatentTables<const float> likely)
      : transitions(likely.transitions.size() / (states * states) * Width), outputs(likely.outputs.size() / states) {
    for (std::size_t row = 0; row < likely.transitions.size() / states; ++row)
      std::copy_n(&likely.transitions[row * states], states, transitions[row / states * Width + row % states].begin());
    for (std::size_t output = 0; output < outputs.size(); ++output)
      std::copy_n(&likely.outputs[output * states], states, outputs[output].begin());
  }

  std::vector<States> transitions;
  std::vector<States> outputs;
};

// Call work(part, first step, last step) for each trace, with the parts in parallel.
template <typename Work>
void for_traces(const Steps& steps, Work work) {
  const std::size_t traces = steps.offsets.size() - 1;
  in_parallel(parts, [&](std::size_t part) {
    for (std::size_t trace = traces * part / parts; trace < traces * (part + 1) / parts; ++trace)
      work(part, static_cast<std::size_t>(steps.offsets[trace]), static_cast<std::size_t>(steps.offsets[trace + 1]));
  });
}

template <std::size_t Width>
double expect_all(const Steps& steps, Id states, LatentTables<const float> likely, LatentTables<double> counts) {
  const auto used = static_cast<std::size_t>(states);
  const PaddedTables<Width> tables(used, likely);
  std::vector<Expectation<Width>> expectations(parts,
                                               Expectation<Width>(steps, used, tables.transitions, tables.outputs));
  for_traces(steps,
             [&](std::size_t part, std::size_t first, std::size_t last) { expectations[part].add(first, last); });
  double log_likelihood = 0.0;
  for (const auto& expectation : expectations) {
    expectation.add_to(counts);
    log_likelihood += expectation.log_likelihood();
  }
  return log_likelihood;
}

}  // namespace

double expect_transitions(const Steps& steps, Id states, LatentTables<const float> likely,
                          LatentTables<double> counts) {
  if (states <= 4) return expect_all<4>(steps, states, likely, counts);
  if (states <= 8) return expect_all<8>(steps, states, likely, counts);
  if (states <= 12) return expect_all<12>(steps, states, likely, counts);
  if (states <= 16) return expect_all<16>(steps, states, likely, counts);
  return expect_all<static_cast<std::size_t>(most_latent_states)>(steps, states, likely, counts);
}

}  // namespace resolvent
