// What moves hidden states, as Python sees it.

#include "answers_after.hpp"
#include "hidden_moves.hpp"

#include "arrays.hpp"

namespace {

using Numbers = Column<float>;

void check(const Ids& source, const Ids& answer, const Rows& offsets, Id states, const Numbers& moves,
           const Numbers& answers) {
  require(states >= 1 && states <= resolvent::most_hidden_states, "there must be 1 to 32 states");
  const auto width = static_cast<std::size_t>(states);
  require(moves.size() % (width * width) == 0 && answers.size() % width == 0, "the tables do not fit the states");
  require(source.size() == answer.size(), "source and answer must be equally long");
  check_offsets(span_of(offsets), source.size());
  check_codes(span_of(source), static_cast<std::int64_t>(moves.size() / (width * width)), resolvent::none);
  check_codes(span_of(answer), static_cast<std::int64_t>(answers.size() / width), resolvent::none);
}

nb::tuple expected_moves(const Ids& source, const Ids& answer, const Rows& offsets, Id states, const Numbers& moves,
                         const Numbers& answers) {
  check(source, answer, offsets, states, moves, answers);
  std::vector<double> move_counts(moves.size());
  std::vector<double> answer_counts(answers.size());
  double log_likelihood = 0.0;
  {
    nb::gil_scoped_release no_gil;
    log_likelihood = resolvent::expect_moves({span_of(source), span_of(answer), span_of(offsets)}, states,
                                             {span_of(moves), span_of(answers)}, {move_counts, answer_counts});
  }
  return nb::make_tuple(log_likelihood, array(std::move(move_counts)), array(std::move(answer_counts)));
}

nb::object answers_told(const Ids& source, const Ids& answer, const Rows& offsets, const Ids& table, Id states,
                        Id answers) {
  require(source.size() == answer.size(), "source and answer must be equally long");
  require(states >= 1 && table.size() % static_cast<std::size_t>(states) == 0, "the table does not fit the states");
  check_offsets(span_of(offsets), source.size());
  check_codes(span_of(table), states, 0);
  check_codes(span_of(source), static_cast<std::int64_t>(table.size()) / states, resolvent::none);
  check_codes(span_of(answer), answers, resolvent::none);
  std::vector<std::int64_t> counts;
  {
    nb::gil_scoped_release no_gil;
    counts = resolvent::answers_told({span_of(source), span_of(answer), span_of(offsets)}, span_of(table), states,
                                     answers);
  }
  return nb::cast(array(std::move(counts)));
}

nb::object answers_after(const Ids& source, const Ids& answer, const Rows& offsets, const Ids& states, Id state,
                         Id sources, Id answers) {
  require(source.size() == answer.size() && source.size() == states.size(), "the columns must be equally long");
  check_offsets(span_of(offsets), source.size());
  check_codes(span_of(source), sources, resolvent::none);
  check_codes(span_of(answer), answers, resolvent::none);
  std::vector<std::int64_t> counts;
  {
    nb::gil_scoped_release no_gil;
    counts = resolvent::answers_after({span_of(source), span_of(answer), span_of(offsets)}, span_of(states), state,
                                      sources, answers);
  }
  return nb::cast(array(std::move(counts)));
}

}  // namespace

void bind_events(nb::module_& module) {
  module.def("expected_moves", &expected_moves, "source"_a, "answer"_a, "offsets"_a, nb::kw_only(), "states"_a,
             "moves"_a, "answers"_a);
  module.def("answers_after", &answers_after, "source"_a, "answer"_a, "offsets"_a, "states"_a, nb::kw_only(),
             "state"_a, "sources"_a, "answers"_a);
  module.def("answers_told", &answers_told, "source"_a, "answer"_a, "offsets"_a, nb::kw_only(), "table"_a,
             "states"_a, "answers"_a);
}
