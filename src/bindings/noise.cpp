// Machines from noisy answers, as Python sees them.

#include "answer_cells.hpp"
#include "log_evidence.hpp"

#include "learning.hpp"

namespace {

resolvent::Answers checked_rows(const Ids& alpha, const Ids& output, const Ids& beta) {
  require(alpha.size() == output.size() && alpha.size() == beta.size(), "alpha, output and beta must be equally long");
  check_ids(span_of(alpha), "alpha holds an id below -1");
  bool answered = true;
  for (std::size_t row = 0; row < alpha.size(); ++row)
    answered &= alpha.data()[row] == resolvent::none || output.data()[row] >= 0;
  require(answered, "a row with an alpha needs an output of at least 0");
  return {span_of(alpha), span_of(output)};
}

nb::tuple weigh_noisy_machine(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets,
                              const Ids& transitions, Id labels) {
  const resolvent::Answers answers = checked_rows(alpha, output, beta);
  const resolvent::Labels read = checked_labels(beta, offsets);
  require(labels >= 1 && transitions.size() > 0 && transitions.size() % static_cast<std::size_t>(labels) == 0,
          "transitions must hold one row of `labels` targets per state");
  check_codes(span_of(beta), labels, resolvent::none);
  const auto states = static_cast<Id>(transitions.size() / static_cast<std::size_t>(labels));
  check_codes(span_of(transitions), states, resolvent::none);
  const resolvent::Moves moves(transitions.data(), transitions.data() + transitions.size());
  const auto evidence = [&] {
    nb::gil_scoped_release no_gil;
    return resolvent::weigh_machine(resolvent::number_answers(answers), read, moves, states, {});
  }();
  return nb::make_tuple(evidence.log_evidence, evidence.noise.strength, evidence.noise.share, evidence.off_main,
                        evidence.answered);
}

}  // namespace

void bind_noise(nb::module_& module) {
  module.def("weigh_noisy_machine", &weigh_noisy_machine, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "transitions"_a, "labels"_a);
}
