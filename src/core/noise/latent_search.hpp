// Search for the most likely machine with latent states: transitions, label error rates, initial states.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "latent_model.hpp"
#include "log_evidence.hpp"
#include "samples.hpp"
#include "viterbi.hpp"

namespace resolvent {

struct LatentOptions {
  LatentKind kind;
  std::uint64_t seed = 0;
  double effort = 1.0;
  Id most_states = 16;
  Row part = 100'000;  // rows to compare sizes on; the best models are refitted on all
};

struct LatentMachine {
  Transitions transitions;  // none if a label is never read
  Id states = 1;
  std::vector<double> starts;  // by state
  std::vector<double> shares;  // of true labels
  LabelNoise labels;
  double log_evidence = 0.0;  // of outputs and transitions, given the recorded labels
  double noise = 0.0;         // share of outputs that differ from the most frequent one of their state and query
};

struct LatentGrowth {
  LatentMachine best;
  std::map<Id, double> sizes;  // best log evidence by number of states
  double one_state = 0.0;      // log evidence of one state
  ViterbiPath path;            // of the traces in their order, under the best model
  bool finished = true;        // false if the time limit was reached
};

// `report` is called regularly with the number of states; it may throw TimeLimitReached, which ends the
// search with the best model so far.
LatentGrowth grow_latent_machine(const Outputs& outputs, const Labels& labels, const LatentOptions& options,
                                 const std::function<void(Id)>& report);

}  // namespace resolvent
