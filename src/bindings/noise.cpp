// Machines from noisy answers, as Python sees them.

#include "answer_cells.hpp"
#include "growing.hpp"
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

// By label: whether it is at first taken to change nothing.
std::vector<std::uint8_t> checked_quiet(const Ids& quiet, const Ids& beta) {
  require(quiet.size() > 0, "there must be a label");
  check_codes(span_of(quiet), 2, 0);
  check_codes(span_of(beta), static_cast<std::int64_t>(quiet.size()), resolvent::none);
  return {quiet.data(), quiet.data() + quiet.size()};
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
  double noise = 0.0;
  const auto evidence = [&] {
    nb::gil_scoped_release no_gil;
    const resolvent::AnswerCells cells = resolvent::number_answers(answers);
    noise = resolvent::share_off_main(cells, read, moves, states);
    return resolvent::weigh_machine(cells, read, moves, states, {});
  }();
  return nb::make_tuple(evidence.log_evidence, noise, evidence.noise.strength, evidence.noise.share);
}

nb::dict grow_noisy_machine(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets,
                            const Ids& quiet, std::uint64_t seed, double effort, Id most_states, Row part,
                            double time_limit, const nb::object& progress) {
  const resolvent::Answers answers = checked_rows(alpha, output, beta);
  const resolvent::Labels read = checked_labels(beta, offsets);
  require(most_states >= 1 && part >= 1 && effort > 0, "an option is out of range");
  const resolvent::GrowthOptions options{seed, effort, most_states, part, checked_quiet(quiet, beta)};
  auto grown = [&] {
    nb::gil_scoped_release no_gil;
    return resolvent::grow_machine(answers, read, options, listener(progress), time_limit);
  }();
  nb::dict sizes;
  for (const auto& [states, machine] : grown.by_size) sizes[nb::int_(states)] = machine.evidence.log_evidence;
  auto& best = grown.best;
  for (std::size_t move = 0; move < best.moves.size(); ++move)
    if (best.evidence.read[move] == 0) best.moves[move] = resolvent::none;
  nb::dict out;
  out["transitions"] = array(std::move(best.moves));
  out["log_evidence"] = best.evidence.log_evidence;
  out["noise"] = grown.noise;
  out["sizes"] = sizes;
  out["finished"] = grown.finished;
  return out;
}

}  // namespace

void bind_noise(nb::module_& module) {
  module.def("weigh_noisy_machine", &weigh_noisy_machine, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "transitions"_a, "labels"_a);
  module.def("grow_noisy_machine", &grow_noisy_machine, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "quiet"_a, "seed"_a, "effort"_a, "most_states"_a, "part"_a, "time_limit"_a = 0.0,
             "progress"_a.none() = nb::none());
}
