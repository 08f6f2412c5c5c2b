#include "evidence.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

namespace resolvent {
namespace {

std::size_t index(std::int64_t id) { return static_cast<std::size_t>(id); }

// Calls work(0) … work(parts - 1), each in a thread of its own; what one throws is thrown.
template <typename Work>
void in_parallel(std::size_t parts, Work work) {
  std::vector<std::exception_ptr> failures(parts);
  const auto guarded = [&](std::size_t part) {
    try {
      work(part);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t part = 1; part < parts; ++part) threads.emplace_back(guarded, part);
    guarded(0);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Cuts traces, in order, into parts of about equally many steps; returns where they begin and end.
std::vector<std::size_t> cut(const TraceColumns& traces, std::span<const Id> order, unsigned parts) {
  std::vector<std::size_t> cuts{0};
  const Row steps = traces.offsets.back();
  Row so_far = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    if (so_far * parts >= steps * static_cast<Row>(cuts.size()) && cuts.size() < parts) cuts.push_back(at);
    so_far += traces.offsets[index(order[at]) + 1] - traces.offsets[index(order[at])];
  }
  cuts.push_back(order.size());
  return cuts;
}

// (state, question) → what was seen. A plain table while that is small. What
// every step looks at (the answer, how often) lies apart from where it was seen
// first, so that more of it stays in the cache.
class Store {
 public:
  struct Tally {
    Id output = none;
    std::uint32_t count = 0;
  };
  struct Place {
    Id trace = none;
    Id step = none;
  };

  Store(Id states, std::int64_t questions)
      : questions_(static_cast<std::uint64_t>(questions)),
        dense_(static_cast<std::uint64_t>(states) * questions_ <= dense_at_most) {
    if (dense_) {
      tallies_.resize(static_cast<std::size_t>(static_cast<std::uint64_t>(states) * questions_));
      places_.resize(tallies_.size());
    } else {
      resize(1024);
    }
  }

  [[nodiscard]] std::uint64_t key(Id state, std::uint64_t question) const {
    return static_cast<std::uint64_t>(state) * questions_ + question;
  }

  // Where the answer to a key is kept; it stays there until a new key comes.
  std::size_t at(std::uint64_t key) { return dense_ ? static_cast<std::size_t>(key) : slot_of(key); }
  Tally& tally(std::size_t at) { return tallies_[at]; }
  Place& place(std::size_t at) { return places_[at]; }

  // All that was seen, by state and question.
  [[nodiscard]] std::vector<SeenAnswer> listed() const {
    std::vector<SeenAnswer> all;
    const auto add = [&](std::uint64_t key, std::size_t at) {
      if (const Tally tally = tallies_[at]; tally.output != none)
        all.push_back({static_cast<Id>(key / questions_), static_cast<std::int64_t>(key % questions_),
                       {tally.output, places_[at].trace, places_[at].step, tally.count}});
    };
    if (dense_) {
      for (std::size_t key = 0; key < tallies_.size(); ++key) add(key, key);
      return all;
    }
    for (const Slot& slot : slots_)
      if (slot.key != empty) add(slot.key, slot.index);
    std::ranges::sort(all, {}, [](const SeenAnswer& one) { return std::tuple(one.state, one.question); });
    return all;
  }

 private:
  struct Slot {
    std::uint64_t key;
    std::size_t index;
  };

  static constexpr std::uint64_t dense_at_most = 1 << 20;
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  [[nodiscard]] std::size_t first_slot(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift_);
  }

  std::size_t slot_of(std::uint64_t key) {
    std::size_t at = first_slot(key);
    while (slots_[at].key != key) {
      if (slots_[at].key == empty) {
        if (tallies_.size() * 2 >= slots_.size()) {
          resize(slots_.size() * 2);
          return slot_of(key);
        }
        slots_[at] = {key, tallies_.size()};
        tallies_.emplace_back();
        places_.emplace_back();
        break;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at].index;
  }

  void resize(std::size_t size) {  // a power of two
    std::vector<Slot> old(size, Slot{empty, 0});
    old.swap(slots_);
    shift_ = 64;
    for (; size > 1; size /= 2) --shift_;
    for (const Slot& slot : old) {
      if (slot.key == empty) continue;
      std::size_t at = first_slot(slot.key);
      while (slots_[at].key != empty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::uint64_t questions_;
  bool dense_;
  std::vector<Tally> tallies_;
  std::vector<Place> places_;
  std::vector<Slot> slots_;  // not used while dense
  unsigned shift_ = 64;
};

// One trace's share of the columns.
struct OneTrace {
  Id number;
  const Id* observation;
  const Id* label;
  const Id* action;
  const Id* reward;
  std::size_t steps;
  Id ended;

  OneTrace(const TraceColumns& traces, Id trace)
      : number(trace),
        observation(traces.observation.data() + traces.offsets[index(trace)] + trace),
        label(traces.label.data() + traces.offsets[index(trace)] + trace),
        action(traces.action.data() + traces.offsets[index(trace)]),
        reward(traces.reward.data() + traces.offsets[index(trace)]),
        steps(index(traces.offsets[index(trace) + 1] - traces.offsets[index(trace)])),
        ended(traces.ended[index(trace)]) {}

  [[nodiscard]] bool terminated() const { return (ended & 1) != 0; }
};

// Traces do not lie in the order they are gone through, so what comes next must be
// asked for early.
void fetch_ahead([[maybe_unused]] const OneTrace& trace) {
#if defined(__GNUC__) || defined(__clang__)
  constexpr std::size_t codes_a_line = 64 / sizeof(Id);
  const std::size_t end = std::min(trace.steps, 32 * codes_a_line);
  for (std::size_t step = 0; step < end; step += codes_a_line) {
    __builtin_prefetch(trace.observation + step);
    __builtin_prefetch(trace.label + step);
    __builtin_prefetch(trace.action + step);
    __builtin_prefetch(trace.reward + step);
  }
#endif
}

// One machine, and what it has been shown.
class Witness {
 public:
  Witness(const Table& table, Id labels, std::int64_t questions)
      : table_(table),
        labels_(labels),
        answers_(table.states, questions),
        moves_(table.transitions.size()) {
    next_row_.reserve(table.transitions.size());
    for (const Id state : table.transitions) next_row_.push_back(state == none ? 0 : index(state) * index(labels));
  }

  // Finds the state at each step of a trace; returns for how many it is known.
  std::size_t walk(const OneTrace& trace, Reading reading, std::vector<Id>& states) {
    // Local copies: the compiler must assume that members change with every count.
    const Id* const transitions = table_.transitions.data();
    const std::size_t* const next_row = next_row_.data();
    const std::size_t lag = index(reading.lag);
    Seen* const moves = moves_.data();
    Id* const state_at = states.data();
    const std::size_t unread = std::min(index(reading.first + reading.lag), trace.steps);
    std::fill_n(state_at, unread, 0);
    std::size_t row = 0;
    for (std::size_t step = unread; step < trace.steps; ++step) {
      const std::size_t move = row + index(trace.label[step - lag]);
      const Id state = transitions[move];
      row = next_row[move];  // each step waits for the one before it only here
      state_at[step] = state;
      if (moves[move].count++ == 0) {
        moves[move].output = state;
        moves[move].trace = trace.number;
        moves[move].step = static_cast<Id>(step);
      }
      if (state == none) return step;
    }
    return trace.steps;
  }

  // Counts the answers at the first `steps` of a trace; `question(t)` and
  // `output(t)` say what is asked at a step and answered.
  template <typename Question, typename Output>
  void ask(const OneTrace& trace, std::size_t steps, const std::vector<Id>& states, Question question, Output output) {
    const Id* const state_at = states.data();
    for (std::size_t step = 0; step < steps; ++step)
      count_answer(state_at[step], question(step), output(step), trace.number, step);
  }

  // Takes in what another was shown by later traces.
  void add(const Witness& later) {
    for (std::size_t at = 0; at < moves_.size(); ++at) {
      if (moves_[at].count == 0)
        moves_[at] = later.moves_[at];
      else
        moves_[at].count += later.moves_[at].count;
    }
    for (const SeenAnswer& more : later.answers_.listed()) add_answers(more);
    for (const auto& [key, seen] : later.clashes_) add_answers({std::get<0>(key), std::get<1>(key), seen});
  }

  [[nodiscard]] Evidence evidence() const {
    Evidence all{answers_.listed(), {}, {}};
    for (const auto& [key, seen] : clashes_) all.clashes.push_back({std::get<0>(key), std::get<1>(key), seen});
    for (std::size_t at = 0; at < moves_.size(); ++at)
      if (moves_[at].count > 0)
        all.moves.push_back(
            {static_cast<Id>(at / index(labels_)), static_cast<Id>(at % index(labels_)), moves_[at]});
    return all;
  }

 private:
  void count_answer(Id state, std::uint64_t question, Id answer, Id trace, std::size_t step) {
    const std::size_t at = answers_.at(answers_.key(state, question));
    if (Store::Tally& tally = answers_.tally(at); tally.output == answer) [[likely]] {
      ++tally.count;
    } else if (tally.output == none) {
      tally = {answer, 1};
      answers_.place(at) = {trace, static_cast<Id>(step)};
    } else {
      add_clash({state, static_cast<std::int64_t>(question), {answer, trace, static_cast<Id>(step), 1}});
    }
  }

  void add_answers(const SeenAnswer& more) {
    const std::size_t at = answers_.at(answers_.key(more.state, static_cast<std::uint64_t>(more.question)));
    if (Store::Tally& tally = answers_.tally(at); tally.output == more.seen.output) {
      tally.count += more.seen.count;
    } else if (tally.output == none) {
      tally = {more.seen.output, more.seen.count};
      answers_.place(at) = {more.seen.trace, more.seen.step};
    } else {
      add_clash(more);
    }
  }

  void add_clash(const SeenAnswer& other) {
    Seen& seen = clashes_[{other.state, other.question, other.seen.output}];
    if (seen.count == 0)
      seen = other.seen;
    else
      seen.count += other.seen.count;
  }

  Table table_;
  Id labels_;
  std::vector<std::size_t> next_row_;  // where the next state's moves begin
  Store answers_;
  std::vector<Seen> moves_;
  std::map<std::tuple<Id, std::int64_t, Id>, Seen> clashes_;
};

// Both machines, and all that a part of the traces shows them.
class PairWitness {
 public:
  PairWitness(const TraceColumns& traces, Reading reading, const Table& transition, const Table& reward,
              bool supplemented)
      : traces_(traces),
        reading_(reading),
        supplemented_(supplemented),
        states_(static_cast<std::uint64_t>(transition.states)),
        transition_(transition, traces.labels, plain_questions()),
        reward_(reward, traces.labels, supplemented ? paired_questions() : plain_questions()),
        situations_(reward.states, supplemented ? 0 : paired_questions()) {}

  void walk(Id number) {
    const OneTrace trace(traces_, number);
    if (trace.steps > transition_states_.size()) {
      transition_states_.resize(trace.steps);
      reward_states_.resize(trace.steps);
    }
    const auto actions = static_cast<std::uint64_t>(traces_.actions);
    const auto plain = [&](std::size_t step) {
      return static_cast<std::uint64_t>(trace.observation[step]) * actions +
             static_cast<std::uint64_t>(trace.action[step]);
    };
    const auto paired = [&, states = states_, state_at = transition_states_.data()](std::size_t step) {
      return (static_cast<std::uint64_t>(trace.observation[step]) * states +
              static_cast<std::uint64_t>(state_at[step])) * actions +
             static_cast<std::uint64_t>(trace.action[step]);
    };
    const auto next = [&](std::size_t step) { return trace.observation[step + 1]; };
    const auto paid = [&](std::size_t step) { return trace.reward[step]; };

    const std::size_t known = transition_.walk(trace, reading_, transition_states_);
    const std::size_t known_reward = reward_.walk(trace, reading_, reward_states_);
    const std::size_t both = std::min(known, known_reward);
    transition_.ask(trace, known, transition_states_, plain, next);
    if (supplemented_) {
      reward_.ask(trace, both, reward_states_, paired, paid);
    } else {
      reward_.ask(trace, known_reward, reward_states_, plain, paid);
      for (std::size_t step = 0; step < both; ++step) count_situation(reward_states_[step], paired(step), 1);
    }
    if (both < trace.steps)
      ++left_;
    else if (trace.terminated())
      ++endings_[{reward_states_[both - 1], static_cast<std::int64_t>(paired(both - 1))}];
  }

  void add(const PairWitness& later) {
    transition_.add(later.transition_);
    reward_.add(later.reward_);
    if (!supplemented_) {
      for (const SeenAnswer& more : later.situations_.listed())
        count_situation(more.state, static_cast<std::uint64_t>(more.question), more.seen.count);
    }
    for (const auto& [situation, count] : later.endings_) endings_[situation] += count;
    left_ += later.left_;
  }

  [[nodiscard]] PairEvidence evidence() const {
    PairEvidence all{transition_.evidence(), reward_.evidence(), {}, left_};
    if (supplemented_) {
      for (const auto& [situation, ended] : endings_)
        all.situations.push_back({situation.first, situation.second, 0, ended});
    } else {
      for (const SeenAnswer& met : situations_.listed()) {
        const auto found = endings_.find({met.state, met.question});
        all.situations.push_back(
            {met.state, met.question, met.seen.count, found == endings_.end() ? 0 : found->second});
      }
    }
    return all;
  }

 private:
  void count_situation(Id state, std::uint64_t question, std::uint32_t times) {
    Store::Tally& tally = situations_.tally(situations_.at(situations_.key(state, question)));
    tally.output = 0;
    tally.count += times;
  }

  [[nodiscard]] std::int64_t plain_questions() const {
    return std::int64_t{traces_.observations} * std::int64_t{traces_.actions};
  }
  [[nodiscard]] std::int64_t paired_questions() const {
    return plain_questions() * static_cast<std::int64_t>(states_);
  }

  const TraceColumns& traces_;
  Reading reading_;
  bool supplemented_;
  std::uint64_t states_;  // of the Transition Machine
  Witness transition_;
  Witness reward_;
  Store situations_;  // only where the Reward Machine is not asked about them
  std::map<std::pair<Id, std::int64_t>, std::int64_t> endings_;
  std::int64_t left_ = 0;
  std::vector<Id> transition_states_;
  std::vector<Id> reward_states_;
};

}  // namespace

std::vector<Row> trace_keys(const TraceColumns& traces, const ValueKeys& keys, unsigned threads) {
  std::vector<Row> out(traces.traces());
  const auto value = [](std::span<const Row> table, Id code) { return static_cast<std::uint64_t>(table[index(code)]); };
  const auto key_of = [&](Id number) {
    const OneTrace trace(traces, number);
    std::uint64_t key = static_cast<std::uint64_t>(trace.ended) + 1;
    for (std::size_t step = 0; step <= trace.steps; ++step) {
      std::uint64_t word = value(keys.observation, trace.observation[step]) ^ value(keys.label, trace.label[step]);
      if (step < trace.steps) word ^= value(keys.action, trace.action[step]) ^ value(keys.reward, trace.reward[step]);
      key = (key ^ word) * 0x9E3779B97F4A7C15ULL;
      key ^= key >> 32;
    }
    return static_cast<Row>(key >> 1);  // not negative, so that it sorts the same everywhere
  };
  const std::size_t parts = std::max<std::size_t>(1, std::min<std::size_t>(threads, out.size()));
  in_parallel(parts, [&](std::size_t part) {
    const std::size_t end = out.size() * (part + 1) / parts;
    for (std::size_t trace = out.size() * part / parts; trace < end; ++trace)
      out[trace] = key_of(static_cast<Id>(trace));
  });
  return out;
}

PairEvidence gather(const TraceColumns& traces, std::span<const Id> order, Reading reading, const Table& transition,
                    const Table& reward, bool supplemented, unsigned threads) {
  const std::vector<std::size_t> cuts = cut(traces, order, std::max(1U, threads));
  std::vector<PairWitness> parts;
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part)
    parts.emplace_back(traces, reading, transition, reward, supplemented);
  in_parallel(parts.size(), [&](std::size_t part) {
    for (std::size_t at = cuts[part]; at < cuts[part + 1]; ++at) {
      if (at + 1 < cuts[part + 1]) fetch_ahead(OneTrace(traces, order[at + 1]));
      parts[part].walk(order[at]);
    }
  });
  for (std::size_t part = 1; part < parts.size(); ++part) parts.front().add(parts[part]);
  return parts.front().evidence();
}

}  // namespace resolvent
