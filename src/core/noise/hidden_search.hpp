// The most likely machine whose state is hidden: its moves, how often labels lie, where it begins.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "hidden_model.hpp"
#include "likely_path.hpp"
#include "log_evidence.hpp"
#include "samples.hpp"

namespace resolvent {

struct HiddenOptions {
  HiddenKind kind;
  std::uint64_t seed = 0;
  double effort = 1.0;
  Id most_states = 16;
  Row part = 100'000;  // rows that sizes are compared on; the best are settled on all
};

struct HiddenMachine {
  Moves moves;  // none where a label is never read, as far as one can tell
  Id states = 1;
  std::vector<double> starts;  // by state
  std::vector<double> shares;  // of true labels
  LabelNoise labels;
  double log_evidence = 0.0;  // of the answers and of the moves, given the recorded labels
  double noise = 0.0;         // the share of answers that are not the main one of their row
};

struct HiddenGrowth {
  HiddenMachine best;
  std::map<Id, double> sizes;  // log evidence of the likeliest machine that was met of each size
  double one_state = 0.0;      // log evidence of the machine without memory
  LikelyPath path;             // through the best machine, of the traces in the order in which they came
  bool finished = true;        // false if time ran out
};

// `look` is called again and again with the number of states; it may throw TimeLimitReached to end
// the search with what there is.
HiddenGrowth grow_hidden_machine(const Answers& answers, const Labels& labels, const HiddenOptions& options,
                                 const std::function<void(Id)>& look);

}  // namespace resolvent
