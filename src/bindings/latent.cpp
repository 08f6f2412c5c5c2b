// Machines with latent states, from noisy labels or random starts, for Python.

#include <chrono>

#include "latent_search.hpp"
#include "learning.hpp"

namespace {

resolvent::LatentKind checked_kind(Id labels, Id no_event, bool noisy_labels, bool random_starts) {
  require(labels >= 1, "there must be a label");
  require(no_event >= resolvent::none && no_event < labels, "no_event is no label");
  return {labels, no_event, noisy_labels, random_starts};
}

nb::dict grow_latent_machine(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets, Id labels,
                             Id no_event, bool noisy_labels, bool random_starts, std::uint64_t seed, double effort,
                             Id most_states, Row part, double time_limit, const nb::object& progress) {
  const resolvent::Outputs outputs = checked_rows(alpha, output, beta);
  require(outputs.alpha.size() > 0, "there must be a row");
  const resolvent::Labels read = checked_labels(beta, offsets);
  check_codes(span_of(beta), labels, resolvent::none);
  require(most_states >= 1 && most_states <= resolvent::most_latent_states && part >= 1 && effort > 0,
          "an option is out of range");
  const resolvent::LatentOptions options{checked_kind(labels, no_event, noisy_labels, random_starts), seed, effort,
                                         most_states, part};
  const auto listen = listener(progress);
  const auto started = std::chrono::steady_clock::now();
  const auto report = [&](Id states) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
    const resolvent::Progress now{states, 0, 0, 0};
    listen(now);
    if (time_limit > 0 && passed.count() > time_limit) throw resolvent::TimeLimitReached{now};
  };
  auto grown = [&] {
    nb::gil_scoped_release no_gil;
    return resolvent::grow_latent_machine(outputs, read, options, report);
  }();
  nb::dict sizes;
  for (const auto& [states, evidence] : grown.sizes) sizes[nb::int_(states)] = evidence;
  auto& best = grown.best;
  nb::dict out;
  out["transitions"] = array(std::move(best.transitions));
  out["starts"] = array(std::move(best.starts));
  out["shares"] = array(std::move(best.shares));
  out["label_noise"] = nb::make_tuple(best.labels.missed, best.labels.added, best.labels.swapped);
  out["log_evidence"] = best.log_evidence;
  out["noise"] = best.noise;
  out["sizes"] = sizes;
  out["finished"] = grown.finished;
  out["labels"] = array(std::move(grown.path.label));
  out["states"] = array(std::move(grown.path.state));
  return out;
}

nb::object true_label_probabilities(Id labels, Id no_event, double missed, double added, double swapped,
                                    const Reals& shares) {
  const resolvent::LatentKind kind = checked_kind(labels, no_event, true, false);
  require(shares.size() == static_cast<std::size_t>(labels), "there must be a share for each label");
  return nb::cast(array(resolvent::true_label_probabilities(kind, {missed, added, swapped}, span_of(shares))));
}

}  // namespace

void bind_latent(nb::module_& module) {
  module.def("true_label_probabilities", &true_label_probabilities, "labels"_a, nb::kw_only(), "no_event"_a, "missed"_a,
             "added"_a, "swapped"_a, "shares"_a);
  module.def("grow_latent_machine", &grow_latent_machine, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "labels"_a, "no_event"_a, "noisy_labels"_a, "random_starts"_a, "seed"_a, "effort"_a, "most_states"_a,
             "part"_a, "time_limit"_a = 0.0, "progress"_a.none() = nb::none());
}
