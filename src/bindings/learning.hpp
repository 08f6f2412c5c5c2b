// Samples → automaton: shared by all inference methods.
#pragma once

#include <functional>
#include <variant>

#include "arrays.hpp"
#include "prefix_tree.hpp"
#include "red_blue.hpp"
#include "watch.hpp"

inline resolvent::Labels checked_labels(const Ids& beta, const Rows& offsets) {
  check_offsets(span_of(offsets), beta.size());
  check_ids(span_of(beta), "beta holds an id below -1");
  return {span_of(beta), span_of(offsets)};
}

inline resolvent::Outputs checked_outputs(const Ids& alpha, const Ids& output,
                                          const resolvent::HistoryTree& histories) {
  const resolvent::Outputs outputs{span_of(alpha), span_of(output)};
  require(outputs.alpha.size() == histories.node_of_row.size() && outputs.output.size() == outputs.alpha.size(),
          "alpha, output and beta must be equally long");
  check_ids(outputs.alpha, "alpha holds an id below -1");
  bool valid = true;
  for (std::size_t row = 0; row < outputs.alpha.size(); ++row)
    valid &= outputs.alpha[row] == resolvent::none || outputs.output[row] >= 0;
  require(valid, "a row with an alpha needs an output of at least 0");
  return outputs;
}

inline resolvent::Outputs checked_rows(const Ids& alpha, const Ids& output, const Ids& beta) {
  require(alpha.size() == output.size() && alpha.size() == beta.size(), "alpha, output and beta must be equally long");
  check_ids(span_of(alpha), "alpha holds an id below -1");
  bool valid = true;
  for (std::size_t row = 0; row < alpha.size(); ++row)
    valid &= alpha.data()[row] == resolvent::none || output.data()[row] >= 0;
  require(valid, "a row with an alpha needs an output of at least 0");
  return {span_of(alpha), span_of(output)};
}

// Let Ctrl-C interrupt, and report to `progress` unless it is None.
inline resolvent::Watch::Listener listener(const nb::object& progress) {
  return [&progress](const resolvent::Progress& now) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(now.red, now.blue, now.settled, now.nodes);
    return true;
  };
}

inline nb::dict automaton_columns(const resolvent::Automaton& automaton) {
  using resolvent::Event;
  using resolvent::StateOutput;
  using resolvent::Transition;
  nb::dict out;
  out["access"] = array(std::vector(automaton.access));
  out["transition_state"] = column(automaton.transitions, &Transition::state);
  out["transition_label"] = column(automaton.transitions, &Transition::label);
  out["transition_target"] = column(automaton.transitions, &Transition::target);
  out["transition_count"] = column(automaton.transitions, &Transition::count);
  out["output_state"] = column(automaton.outputs, &StateOutput::state);
  out["output_alpha"] = column(automaton.outputs, &StateOutput::alpha);
  out["output_value"] = column(automaton.outputs, &StateOutput::output);
  out["output_count"] = column(automaton.outputs, &StateOutput::count);
  out["event_red"] = column(automaton.events, &Event::red);
  out["event_blue"] = column(automaton.events, &Event::blue);
  out["event_score"] = column(automaton.events, &Event::score);
  out["event_folded"] = column(automaton.events, &Event::folded);
  out["attempts"] = automaton.attempts;
  out["wrong"] = automaton.wrong;
  out["finished"] = automaton.finished;
  return out;
}

using Learner = std::function<resolvent::Automaton(const resolvent::PrefixTree&, resolvent::Watch&)>;

// Return a dict of columns with the work, or the two rows of a contradiction, or the progress at the time
// limit, or the limit that was exceeded.
inline nb::dict learn_with(const Learner& learner, const resolvent::HistoryTree& histories, const Ids& alpha,
                           const Ids& output, double time_limit, const nb::object& progress,
                           std::int64_t most_work = 0) {
  using Result = std::variant<resolvent::Automaton, resolvent::Contradiction, resolvent::TimeLimitReached,
                              resolvent::StateLimitExceeded, resolvent::WorkLimitReached>;
  const resolvent::Outputs outputs = checked_outputs(alpha, output, histories);
  resolvent::Watch watch(listener(progress), time_limit, most_work);
  const Result result = [&]() -> Result {
    nb::gil_scoped_release no_gil;
    try {
      const auto built = resolvent::build_prefix_tree(histories, outputs);
      if (const auto* contradiction = std::get_if<resolvent::Contradiction>(&built)) return *contradiction;
      return learner(std::get<resolvent::PrefixTree>(built), watch);
    } catch (const resolvent::TimeLimitReached& reached) {
      return reached;
    } catch (const resolvent::StateLimitExceeded& reached) {
      return reached;
    } catch (const resolvent::WorkLimitReached& reached) {
      return reached;
    }
  }();
  nb::dict out;
  if (const auto* automaton = std::get_if<resolvent::Automaton>(&result)) {
    out = automaton_columns(*automaton);
    out["work"] = watch.work();
  } else if (std::holds_alternative<resolvent::StateLimitExceeded>(result)) {
    out["given_up"] = "states";
  } else if (std::holds_alternative<resolvent::WorkLimitReached>(result)) {
    out["given_up"] = "work";
  } else if (const auto* rows = std::get_if<resolvent::Contradiction>(&result)) {
    out["contradiction"] = nb::make_tuple(rows->first, rows->second);
  } else {
    const auto& now = std::get<resolvent::TimeLimitReached>(result).progress;
    out["time_limit"] = nb::make_tuple(now.red, now.blue, now.settled, now.nodes);
  }
  return out;
}
