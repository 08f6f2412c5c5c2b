#include "separation.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace resolvent {
namespace {

struct Pair {
  Id one;
  Id other;
};

class Separating {
 public:
  Separating(const Leads& leads, Pulse& pulse) : leads_(leads), pulse_(pulse) {
    const std::size_t pairs = index(leads.states) * (index(leads.states) - 1) / 2;
    out_.depth.assign(pairs, none);
    out_.label.assign(pairs, none);
    out_.queries.assign(pairs, 0);
    out_.support.assign(pairs, 0);
    out_.lower.assign(pairs, none);
    out_.higher.assign(pairs, none);
  }

  void ask(const Shown& shown, std::span<const Row> count, std::span<const Row> step) {
    std::vector<Row> steps(out_.depth.size(), std::numeric_limits<Row>::max());
    pulse_.progress.nodes = static_cast<Row>(shown.query.size());
    for (std::size_t first = 0, last = 0; first < shown.query.size(); first = last) {
      while (last < shown.query.size() && shown.query[last] == shown.query[first]) ++last;
      for (std::size_t a = first; a < last; ++a) {
        for (std::size_t b = a + 1; b < last; ++b) {
          if (shown.output[a] == shown.output[b]) continue;
          const std::size_t pair = number(shown.state[a], shown.state[b]);
          ++out_.queries[pair];
          out_.support[pair] += count[a] + count[b];
          if (step[a] + step[b] >= steps[pair]) continue;
          steps[pair] = step[a] + step[b];
          out_.lower[pair] = static_cast<Id>(a);
          out_.higher[pair] = static_cast<Id>(b);
        }
        ++pulse_.progress.settled;
        pulse_.beat();
      }
    }
    for (std::size_t pair = 0; pair < out_.depth.size(); ++pair)
      if (out_.queries[pair] > 0) out_.depth[pair] = 0;
  }

  // Breadth first, from the pairs told apart at once: those that one label leads
  // to them, then those that one label leads to these, and so on.
  void read() {
    std::vector<Pair> found = one_label_before();
    if (!found.empty()) index_sources();
    for (Id depth = 1; !found.empty(); ++depth) {
      for (const Pair pair : found) settle(pair, depth);
      found = before(found);
    }
  }

  Separations take() { return std::move(out_); }

 private:
  [[nodiscard]] std::size_t number(Id one, Id other) const { return pair_number(one, other, leads_.states); }
  [[nodiscard]] Id target(Id state, Id label) const {
    return leads_.target[index(state) * index(leads_.labels) + index(label)];
  }
  [[nodiscard]] std::size_t source(Id label, Id state) const {
    return index(label) * index(leads_.states) + index(state);
  }

  // Where a label leads a pair, or the number of pairs where to none.
  [[nodiscard]] std::size_t after(Pair pair, Id label) const {
    const Id one = target(pair.one, label);
    const Id other = target(pair.other, label);
    return one == none || other == none || one == other ? out_.depth.size() : number(one, other);
  }

  std::vector<Pair> one_label_before() {
    std::vector<Pair> found;
    for (Id one = 0; one < leads_.states; ++one) {
      for (Id other = one + 1; other < leads_.states; ++other) {
        const std::size_t pair = number(one, other);
        for (Id label = 0; out_.depth[pair] == none && label < leads_.labels; ++label) {
          const std::size_t led = after({one, other}, label);
          pulse_.beat();
          if (led == out_.depth.size() || out_.depth[led] != 0) continue;
          out_.label[pair] = label;
          found.push_back({one, other});
          break;
        }
      }
    }
    return found;
  }

  // The states that each label leads to each state from, one list after another.
  void index_sources() {
    first_source_.assign(index(leads_.labels) * index(leads_.states) + 1, 0);
    for (int pass = 0; pass < 2; ++pass) {
      for (Id state = leads_.states; state-- > 0;) {
        for (Id label = 0; label < leads_.labels; ++label) {
          const Id led = target(state, label);
          if (led == none) continue;
          if (pass == 0)
            ++first_source_[source(label, led)];
          else
            sources_[--first_source_[source(label, led)]] = state;
        }
      }
      if (pass > 0) continue;
      std::size_t total = 0;
      for (std::size_t& entry : first_source_) entry = total += entry;
      sources_.resize(total);
    }
  }

  [[nodiscard]] std::span<const Id> sources(Id label, Id state) const {
    const std::size_t at = source(label, state);
    return std::span(sources_).subspan(first_source_[at], first_source_[at + 1] - first_source_[at]);
  }

  std::vector<Pair> before(const std::vector<Pair>& led) {
    std::vector<Pair> found;
    for (const Pair pair : led) {
      for (Id label = 0; label < leads_.labels; ++label) {
        pulse_.beat();
        for (const Id one : sources(label, pair.one)) {
          for (const Id other : sources(label, pair.other)) {
            const std::size_t at = number(one, other);
            if (out_.depth[at] != none) continue;
            if (out_.label[at] == none) found.push_back({one, other});
            if (out_.label[at] == none || label < out_.label[at]) out_.label[at] = label;
          }
        }
      }
    }
    return found;
  }

  void settle(Pair pair, Id depth) {
    const std::size_t at = number(pair.one, pair.other);
    const std::size_t led = after(pair, out_.label[at]);
    out_.depth[at] = depth;
    out_.queries[at] = out_.queries[led];
    out_.support[at] = out_.support[led];
    out_.lower[at] = out_.lower[led];
    out_.higher[at] = out_.higher[led];
  }

  Leads leads_;
  Pulse& pulse_;
  Separations out_;
  std::vector<std::size_t> first_source_;
  std::vector<Id> sources_;
};

}  // namespace

std::size_t pair_number(Id one, Id other, Id states) {
  const std::size_t lower = index(std::min(one, other));
  const std::size_t higher = index(std::max(one, other));
  return lower * (2 * index(states) - lower - 1) / 2 + higher - lower - 1;
}

Separations separate(const Shown& shown, std::span<const Row> count, std::span<const Row> step, const Leads& leads,
                     Pulse& pulse) {
  Separating separating(leads, pulse);
  separating.ask(shown, count, step);
  separating.read();
  return separating.take();
}

}  // namespace resolvent
