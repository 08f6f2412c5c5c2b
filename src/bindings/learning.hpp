// Samples in, an automaton out: what all ways of learning one share.
#pragma once

#include <functional>
#include <variant>

#include "arrays.hpp"
#include "prefix_tree.hpp"
#include "pulse.hpp"
#include "red_blue.hpp"

inline resolvent::Labels checked_labels(const Ids& beta, const Rows& offsets) {
  check_offsets(span_of(offsets), beta.size());
  check_ids(span_of(beta), "beta holds an id below -1");
  return {span_of(beta), span_of(offsets)};
}

inline resolvent::Answers checked_answers(const Ids& alpha, const Ids& output, const resolvent::HistoryTree& histories) {
  const resolvent::Answers answers{span_of(alpha), span_of(output)};
  require(answers.alpha.size() == histories.node_of_row.size() && answers.output.size() == answers.alpha.size(),
          "alpha, output and beta must be equally long");
  check_ids(answers.alpha, "alpha holds an id below -1");
  bool answered = true;
  for (std::size_t row = 0; row < answers.alpha.size(); ++row)
    answered &= answers.alpha[row] == resolvent::none || answers.output[row] >= 0;
  require(answered, "a row with an alpha needs an output of at least 0");
  return answers;
}

inline resolvent::Answers checked_rows(const Ids& alpha, const Ids& output, const Ids& beta) {
  require(alpha.size() == output.size() && alpha.size() == beta.size(), "alpha, output and beta must be equally long");
  check_ids(span_of(alpha), "alpha holds an id below -1");
  bool answered = true;
  for (std::size_t row = 0; row < alpha.size(); ++row)
    answered &= alpha.data()[row] == resolvent::none || output.data()[row] >= 0;
  require(answered, "a row with an alpha needs an output of at least 0");
  return {span_of(alpha), span_of(output)};
}

// Lets Ctrl-C through and tells `progress` (if it is not None) how far it is.
inline resolvent::Pulse::Listener listener(const nb::object& progress) {
  return [&progress](const resolvent::Progress& now) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(now.red, now.blue, now.settled, now.nodes);
    return true;
  };
}

inline nb::dict learned(const resolvent::Automaton& automaton) {
  using resolvent::Event;
  using resolvent::Output;
  using resolvent::Transition;
  nb::dict out;
  out["access"] = array(std::vector(automaton.access));
  out["transition_state"] = column(automaton.transitions, &Transition::state);
  out["transition_label"] = column(automaton.transitions, &Transition::label);
  out["transition_target"] = column(automaton.transitions, &Transition::target);
  out["transition_count"] = column(automaton.transitions, &Transition::count);
  out["output_state"] = column(automaton.outputs, &Output::state);
  out["output_alpha"] = column(automaton.outputs, &Output::alpha);
  out["output_value"] = column(automaton.outputs, &Output::output);
  out["output_count"] = column(automaton.outputs, &Output::count);
  out["event_red"] = column(automaton.events, &Event::red);
  out["event_blue"] = column(automaton.events, &Event::blue);
  out["event_score"] = column(automaton.events, &Event::score);
  out["event_folded"] = column(automaton.events, &Event::folded);
  out["attempts"] = automaton.attempts;
  out["wrong"] = automaton.wrong;
  out["finished"] = automaton.finished;
  return out;
}

using Learner = std::function<resolvent::Automaton(const resolvent::PrefixTree&, resolvent::Pulse&)>;

// A dict of columns with the work it took, or the two rows that contradict each other, or
// the progress made when time ran out, or that it was given up.
inline nb::dict learn_with(const Learner& learner, const resolvent::HistoryTree& histories, const Ids& alpha,
                    const Ids& output, double time_limit, const nb::object& progress, std::int64_t most_work = 0) {
  using Result = std::variant<resolvent::Automaton, resolvent::Contradiction, resolvent::TimeLimitReached,
                              resolvent::TooManyStates, resolvent::TooMuchWork>;
  const resolvent::Answers answers = checked_answers(alpha, output, histories);
  resolvent::Pulse pulse(listener(progress), time_limit, most_work);
  const Result result = [&]() -> Result {
    nb::gil_scoped_release no_gil;
    try {
      const auto built = resolvent::build_prefix_tree(histories, answers);
      if (const auto* contradiction = std::get_if<resolvent::Contradiction>(&built)) return *contradiction;
      return learner(std::get<resolvent::PrefixTree>(built), pulse);
    } catch (const resolvent::TimeLimitReached& reached) {
      return reached;
    } catch (const resolvent::TooManyStates& given_up) {
      return given_up;
    } catch (const resolvent::TooMuchWork& given_up) {
      return given_up;
    }
  }();
  nb::dict out;
  if (const auto* automaton = std::get_if<resolvent::Automaton>(&result)) {
    out = learned(*automaton);
    out["work"] = pulse.work();
  } else if (std::holds_alternative<resolvent::TooManyStates>(result)) {
    out["given_up"] = "states";
  } else if (std::holds_alternative<resolvent::TooMuchWork>(result)) {
    out["given_up"] = "work";
  } else if (const auto* rows = std::get_if<resolvent::Contradiction>(&result)) {
    out["contradiction"] = nb::make_tuple(rows->first, rows->second);
  } else {
    const auto& now = std::get<resolvent::TimeLimitReached>(result).progress;
    out["time_limit"] = nb::make_tuple(now.red, now.blue, now.settled, now.nodes);
  }
  return out;
}
