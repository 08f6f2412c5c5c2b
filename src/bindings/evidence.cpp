// Traces as columns that are checked once and replayed often.

#include <limits>
#include <string>

#include "arrays.hpp"
#include "evidence.hpp"

namespace {

// Holds on to the arrays, and to what was checked about them.
class TraceColumns {
 public:
  TraceColumns(Ids observation, Ids label, Ids action, Ids reward, Rows offsets, Ids ended, Id observations, Id labels,
               Id actions, Id rewards)
      : observation_(std::move(observation)),
        label_(std::move(label)),
        action_(std::move(action)),
        reward_(std::move(reward)),
        offsets_(std::move(offsets)),
        ended_(std::move(ended)),
        columns_{span_of(observation_), span_of(label_), span_of(action_), span_of(reward_), span_of(offsets_),
                 span_of(ended_),       observations,    labels,           actions},
        rewards_(rewards) {
    check_offsets(columns_.offsets, columns_.action.size());
    const std::size_t traces = columns_.traces();
    require(columns_.reward.size() == columns_.action.size() && columns_.ended.size() == traces &&
                columns_.observation.size() == columns_.action.size() + traces &&
                columns_.label.size() == columns_.observation.size(),
            "the columns do not fit the offsets");
    require(traces < static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many traces");
    for (std::size_t trace = 0; trace < traces; ++trace)
      require(columns_.offsets[trace + 1] > columns_.offsets[trace], "a trace has no steps");
    nb::gil_scoped_release no_gil;
    check_codes(columns_.observation, observations, 0);
    check_codes(columns_.label, labels, 0);
    check_codes(columns_.action, actions, 0);
    check_codes(columns_.reward, rewards, 0);
  }

  nb::object keys(const Rows& observation, const Rows& label, const Rows& action, const Rows& reward,
                  unsigned threads) const {
    const resolvent::ValueKeys keys{span_of(observation), span_of(label), span_of(action), span_of(reward)};
    require(keys.observation.size() >= size(columns_.observations) && keys.label.size() >= size(columns_.labels) &&
                keys.action.size() >= size(columns_.actions) && keys.reward.size() >= size(rewards_),
            "a key is missing");
    std::vector<Row> out;
    {
      nb::gil_scoped_release no_gil;
      out = resolvent::trace_keys(columns_, keys, threads);
    }
    return nb::cast(array(std::move(out)));
  }

  nb::dict gather(const Ids& order, Id first, Id lag, const Ids& transition, const Ids& reward, bool supplemented,
                  unsigned threads) const {
    require(first >= 0 && first <= 1 && lag >= 0 && lag <= 1, "a reading starts at label 0 or 1, at most one step late");
    check_codes(span_of(order), static_cast<std::int64_t>(columns_.traces()), 0);
    const resolvent::Table tables[] = {checked(transition), checked(reward)};
    resolvent::PairEvidence found;
    {
      nb::gil_scoped_release no_gil;
      found = resolvent::gather(columns_, span_of(order), {first, lag}, tables[0], tables[1], supplemented, threads);
    }
    nb::dict out;
    out["transition"] = columns_of(found.transition);
    out["reward"] = columns_of(found.reward);
    using resolvent::Situation;
    out["situation_state"] = column(found.situations, &Situation::state);
    out["situation_question"] = column(found.situations, &Situation::question);
    out["situation_count"] = column(found.situations, &Situation::count);
    out["situation_ended"] = column(found.situations, &Situation::ended);
    out["left"] = found.left;
    return out;
  }

 private:
  static std::size_t size(Id count) { return static_cast<std::size_t>(count); }

  [[nodiscard]] resolvent::Table checked(const Ids& transitions) const {
    const auto table = span_of(transitions);
    require(columns_.labels > 0 && !table.empty() && table.size() % size(columns_.labels) == 0,
            "transitions must hold one row of targets per state");
    const auto states = static_cast<Id>(table.size() / size(columns_.labels));
    check_codes(table, states, resolvent::none);
    return {table, states};
  }

  static nb::dict columns_of(const resolvent::Evidence& evidence) {
    nb::dict out;
    add_answers(out, "answer", evidence.answers);
    add_answers(out, "clash", evidence.clashes);
    using resolvent::SeenMove;
    out["move_state"] = column(evidence.moves, &SeenMove::state);
    out["move_label"] = column(evidence.moves, &SeenMove::label);
    add_seen(out, "move", evidence.moves);
    return out;
  }

  static void add_answers(nb::dict& out, const std::string& name, const std::vector<resolvent::SeenAnswer>& answers) {
    using resolvent::SeenAnswer;
    out[(name + "_state").c_str()] = column(answers, &SeenAnswer::state);
    out[(name + "_question").c_str()] = column(answers, &SeenAnswer::question);
    add_seen(out, name, answers);
  }

  template <typename Record>
  static void add_seen(nb::dict& out, const std::string& name, const std::vector<Record>& records) {
    std::vector<Id> output;
    std::vector<Id> trace;
    std::vector<Id> step;
    std::vector<Row> count;
    for (const Record& record : records) {
      output.push_back(record.seen.output);
      trace.push_back(record.seen.trace);
      step.push_back(record.seen.step);
      count.push_back(record.seen.count);
    }
    out[(name + "_output").c_str()] = array(std::move(output));
    out[(name + "_trace").c_str()] = array(std::move(trace));
    out[(name + "_step").c_str()] = array(std::move(step));
    out[(name + "_count").c_str()] = array(std::move(count));
  }

  Ids observation_;
  Ids label_;
  Ids action_;
  Ids reward_;
  Rows offsets_;
  Ids ended_;
  resolvent::TraceColumns columns_;
  Id rewards_;
};

}  // namespace

void bind_evidence(nb::module_& module) {
  nb::class_<TraceColumns>(module, "TraceColumns")
      .def(nb::init<Ids, Ids, Ids, Ids, Rows, Ids, Id, Id, Id, Id>(), nb::kw_only(), "observation"_a, "label"_a,
           "action"_a, "reward"_a, "offsets"_a, "ended"_a, "observations"_a, "labels"_a, "actions"_a, "rewards"_a)
      .def("keys", &TraceColumns::keys, nb::kw_only(), "observation"_a, "label"_a, "action"_a, "reward"_a, "threads"_a)
      .def("gather", &TraceColumns::gather, nb::kw_only(), "order"_a, "first"_a, "lag"_a, "transition"_a, "reward"_a,
           "supplemented"_a, "threads"_a);
}
