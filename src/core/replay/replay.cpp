#include "replay.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "parallel.hpp"

namespace resolvent {
namespace {

std::size_t index(std::int64_t id) { return static_cast<std::size_t>(id); }

// Cuts traces into parts of about equally many steps; returns where they begin and end.
std::vector<std::size_t> cut(const TraceColumns& traces, std::size_t machines, unsigned threads) {
  std::vector<std::size_t> cuts{0};
  const Row steps = traces.offsets.back();
  const auto parts = static_cast<Row>(worth_while(static_cast<std::size_t>(steps) * machines, threads));
  for (std::size_t at = 0; at < traces.traces(); ++at)
    if (traces.offsets[at] * parts >= steps * static_cast<Row>(cuts.size()) && static_cast<Row>(cuts.size()) < parts) cuts.push_back(at);
  cuts.push_back(traces.traces());
  return cuts;
}

// (state, query) → what was seen. A plain table while that is small. What
// every step looks at (the answer, how often) lies apart from where it was seen
// first, so that more of it stays in the cache. Not every state is a machine's:
// the one after the last stands for "not known".
class Store {
 public:
  struct Tally {
    Id output = none;
    std::uint32_t count = 0;
  };
  struct Places {
    Place first;
    Place earliest;
    Id rank = none;  // of the trace in which the first is
  };

  // `steps` is how many keys can come at most: for few of them a large table is not worth making.
  Store(std::int64_t states, std::int64_t queries, Row steps)
      : queries_(static_cast<std::uint64_t>(queries)),
        dense_(static_cast<std::uint64_t>(states) <=
               std::clamp<std::uint64_t>(4 * static_cast<std::uint64_t>(steps), dense_at_least, dense_at_most) /
                   std::max<std::uint64_t>(queries_, 1)) {
    if (dense_) {
      tallies_.resize(static_cast<std::size_t>(static_cast<std::uint64_t>(states) * queries_));
      places_.resize(tallies_.size());
    } else {
      resize(1024);
    }
  }

  [[nodiscard]] std::uint64_t key(Id state, std::uint64_t query) const {
    return static_cast<std::uint64_t>(state) * queries_ + query;
  }

  // Where the answer to a key is kept; it stays there until a new key comes.
  std::size_t at(std::uint64_t key) { return dense_ ? static_cast<std::size_t>(key) : slot_of(key); }
  Tally& tally(std::size_t at) { return tallies_[at]; }
  Places& places(std::size_t at) { return places_[at]; }

  // All that was seen, by state and query.
  [[nodiscard]] std::vector<AnswerSeen> listed() const {
    std::vector<AnswerSeen> all;
    const auto add = [&](std::uint64_t key, std::size_t at) {
      if (const Tally tally = tallies_[at]; tally.output != none)
        all.push_back({static_cast<Id>(key / queries_), static_cast<std::int64_t>(key % queries_),
                       {tally.output, tally.count, places_[at].first, places_[at].earliest, places_[at].rank}});
    };
    if (dense_) {
      for (std::size_t key = 0; key < tallies_.size(); ++key) add(key, key);
      return all;
    }
    for (const Slot& slot : slots_)
      if (slot.key != empty) add(slot.key, slot.index);
    std::ranges::sort(all, {}, [](const AnswerSeen& one) { return std::tuple(one.state, one.query); });
    return all;
  }

 private:
  struct Slot {
    std::uint64_t key;
    std::size_t index;
  };

  static constexpr std::uint64_t dense_at_least = 1 << 12;
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

  std::uint64_t queries_;
  bool dense_;
  std::vector<Tally> tallies_;
  std::vector<Places> places_;
  std::vector<Slot> slots_;  // not used while dense
  unsigned shift_ = 64;
};

// Of two places, the one with fewer steps before it; of equals the first.
void take_earlier(Place& place, const Place& other) {
  if (place.trace == none || (other.trace != none && other.step < place.step)) place = other;
}

// Of two places, the one in a trace of lower rank.
void take_lower(Place& place, Id& rank, const Place& other, Id other_rank) {
  if (other_rank >= rank) return;
  place = other;
  rank = other_rank;
}

void add_to(Sighting& seen, const Sighting& more) {
  if (seen.count == 0) {
    seen = more;
    return;
  }
  seen.count += more.count;
  take_lower(seen.place, seen.rank, more.place, more.rank);
  take_earlier(seen.earliest, more.earliest);
}

// One machine, and what it has been shown.
class Witness {
 public:
  Witness(const ReplayedMachine& machine, Id labels, std::int64_t queries, Row steps, Wanted wanted)
      : machine_(machine),
        labels_(labels),
        wanted_(wanted),
        answers_(std::int64_t{machine.states} + (wanted.unknown_states ? 1 : 0), queries, steps),
        moves_(machine.transitions.size()) {
    next_row_.reserve(machine.transitions.size());
    for (const Id state : machine.transitions) next_row_.push_back(state == none ? 0 : index(state) * index(labels));
  }

  // Finds the state at each step of a trace; returns for how many it is known.
  template <bool ranked>
  std::size_t walk(const OneTrace& trace, Id rank, Reading reading) {
    if (trace.steps > states_.size()) states_.resize(trace.steps);
    // Local copies: the compiler must assume that members change with every count.
    const Id* const transitions = machine_.transitions.data();
    const std::size_t* const next_row = next_row_.data();
    const std::size_t lag = index(reading.lag);
    const bool earliest = wanted_.earliest;
    Sighting* const moves = moves_.data();
    Id* const state_at = states_.data();
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
        moves[move].place = moves[move].earliest = {trace.number, static_cast<Id>(step)};
        moves[move].rank = rank;
      } else {
        if constexpr (ranked) take_lower(moves[move].place, moves[move].rank, {trace.number, static_cast<Id>(step)}, rank);
        if (earliest) take_earlier(moves[move].earliest, {trace.number, static_cast<Id>(step)});
      }
      if (state == none) {
        std::fill(state_at + step, state_at + trace.steps, none);
        return step;
      }
    }
    return trace.steps;
  }

  [[nodiscard]] const std::vector<Id>& states() const { return states_; }

  // Counts the answers of a trace, up to where the state is `known` and, where answers in
  // no known state are wanted, beyond that; in any case only before step `asked`.
  // `query(t)` and `output(t)` say what is asked at a step and answered.
  template <bool ranked, typename Query, typename Output>
  void ask(const OneTrace& trace, Id rank, std::size_t known, std::size_t asked, Query query, Output output) {
    const Id* const state_at = states_.data();
    const std::size_t in_states = std::min(known, asked);
    if (wanted_.earliest) {
      for (std::size_t step = 0; step < in_states; ++step)
        count_answer<true, ranked>(state_at[step], query(step), output(step), trace.number, step, rank);
    } else {
      for (std::size_t step = 0; step < in_states; ++step)
        count_answer<false, ranked>(state_at[step], query(step), output(step), trace.number, step, rank);
    }
    if (!wanted_.unknown_states) return;
    for (std::size_t step = in_states; step < asked; ++step)
      count_answer<true, ranked>(machine_.states, query(step), output(step), trace.number, step, rank);
    unasked_ += static_cast<std::int64_t>(trace.steps - asked);
  }

  // Takes in what another was shown by later traces.
  void add(const Witness& later) {
    for (std::size_t at = 0; at < moves_.size(); ++at)
      if (later.moves_[at].count > 0) add_to(moves_[at], later.moves_[at]);
    for (const AnswerSeen& more : later.answers_.listed()) add_answers(more);
    for (const auto& [key, seen] : later.clashes_) add_answers({std::get<0>(key), std::get<1>(key), seen});
    unasked_ += later.unasked_;
  }

  [[nodiscard]] MachineReplay shown() const {
    MachineReplay all{answers_.listed(), {}, {}, unasked_, {}};
    for (const auto& [key, seen] : clashes_) all.clashes.push_back({std::get<0>(key), std::get<1>(key), seen});
    for (auto* rows : {&all.answers, &all.clashes})
      for (AnswerSeen& one : *rows)
        if (one.state == machine_.states) one.state = none;
    for (std::size_t at = 0; at < moves_.size(); ++at)
      if (moves_[at].count > 0)
        all.moves.push_back(
            {static_cast<Id>(at / index(labels_)), static_cast<Id>(at % index(labels_)), moves_[at]});
    return all;
  }

 private:
  template <bool earliest, bool ranked>
  void count_answer(Id state, std::uint64_t query, Id answer, Id trace, std::size_t step, Id rank) {
    const std::size_t at = answers_.at(answers_.key(state, query));
    const Place here{trace, static_cast<Id>(step)};
    if (Store::Tally& tally = answers_.tally(at); tally.output == answer) [[likely]] {
      ++tally.count;
      if constexpr (ranked) take_lower(answers_.places(at).first, answers_.places(at).rank, here, rank);
      if constexpr (earliest) take_earlier(answers_.places(at).earliest, here);
    } else if (tally.output == none) {
      tally = {answer, 1};
      answers_.places(at) = {here, here, rank};
    } else {
      add_to(clashes_[{state, static_cast<std::int64_t>(query), answer}], {answer, 1, here, here, rank});
    }
  }

  void add_answers(const AnswerSeen& more) {
    const std::size_t at = answers_.at(answers_.key(more.state, static_cast<std::uint64_t>(more.query)));
    if (Store::Tally& tally = answers_.tally(at); tally.output == more.seen.output) {
      tally.count += more.seen.count;
      take_lower(answers_.places(at).first, answers_.places(at).rank, more.seen.place, more.seen.rank);
      take_earlier(answers_.places(at).earliest, more.seen.earliest);
    } else if (tally.output == none) {
      tally = {more.seen.output, more.seen.count};
      answers_.places(at) = {more.seen.place, more.seen.earliest, more.seen.rank};
    } else {
      add_to(clashes_[{more.state, more.query, more.seen.output}], more.seen);
    }
  }

  ReplayedMachine machine_;
  Id labels_;
  Wanted wanted_;
  std::vector<std::size_t> next_row_;  // where the next state's moves begin
  Store answers_;
  std::vector<Sighting> moves_;
  std::map<std::tuple<Id, std::int64_t, Id>, Sighting> clashes_;
  std::int64_t unasked_ = 0;
  std::vector<Id> states_;  // of the trace that was walked last
};

// All machines, and all that a part of the traces shows them.
class Witnesses {
 public:
  Witnesses(const TraceColumns& traces, Reading reading, std::span<const ReplayedMachine> machines, Wanted wanted)
      : traces_(traces),
        reading_(reading),
        machines_(machines),
        wanted_(wanted),
        counted_(answers_count_situations(machines)),
        first_states_(machines.empty() ? 1 : static_cast<std::uint64_t>(machines.front().states)),
        situations_(1, counted_ || !wanted.situations ? 0 : all_situations(), traces.offsets.back()) {
    for (const ReplayedMachine& machine : machines)
      witnesses_.emplace_back(machine, traces.labels, asked_of(machine), traces.offsets.back(), wanted);
    known_.resize(machines.size());
  }

  // Replays one trace; writes the states at its steps where there is somewhere to write them.
  template <bool ranked>
  void walk(Id number, Id rank, std::vector<std::vector<Id>>& states) {
    const OneTrace trace(traces_, number);
    std::size_t all_known = trace.steps;
    for (std::size_t at = 0; at < machines_.size(); ++at) {
      known_[at] = witnesses_[at].template walk<ranked>(trace, rank, reading_);
      all_known = std::min(all_known, known_[at]);
      if (!states.empty())
        std::copy_n(witnesses_[at].states().begin(), trace.steps, states[at].begin() + static_cast<Row>(trace.first));
    }
    if (!wanted_.answers) return;
    for (std::size_t at = 0; at < machines_.size(); ++at) ask<ranked>(at, trace, rank);
    if (!wanted_.situations) return;
    if (!counted_)
      for (std::size_t step = 0; step < all_known; ++step) count_situation(situation(trace, step), 1);
    if (all_known == trace.steps && trace.terminated())
      ++endings_[static_cast<std::int64_t>(situation(trace, trace.steps - 1))];
  }

  void add(const Witnesses& later) {
    for (std::size_t at = 0; at < witnesses_.size(); ++at) witnesses_[at].add(later.witnesses_[at]);
    for (const AnswerSeen& more : later.situations_.listed())
      count_situation(static_cast<std::uint64_t>(more.query), more.seen.count);
    for (const auto& [situation, count] : later.endings_) endings_[situation] += count;
  }

  [[nodiscard]] Replay shown() const {
    Replay all;
    for (const Witness& witness : witnesses_) all.machines.push_back(witness.shown());
    if (counted_) {
      for (const auto& [situation, ended] : endings_) all.situations.push_back({situation, 0, ended});
    } else {
      for (const AnswerSeen& met : situations_.listed()) {
        const auto found = endings_.find(met.query);
        all.situations.push_back({met.query, met.seen.count, found == endings_.end() ? 0 : found->second});
      }
    }
    return all;
  }

 private:
  template <bool ranked>
  void ask(std::size_t at, const OneTrace& trace, Id rank) {
    const auto actions = static_cast<std::uint64_t>(traces_.actions);
    const auto plain = [actions, seen = trace.observation, done = trace.action](std::size_t step) {
      return static_cast<std::uint64_t>(seen[step]) * actions + static_cast<std::uint64_t>(done[step]);
    };
    const auto paired = [actions, seen = trace.observation, done = trace.action, states = first_states_,
                         state_at = witnesses_.front().states().data()](std::size_t step) {
      return (static_cast<std::uint64_t>(seen[step]) * states + static_cast<std::uint64_t>(state_at[step])) * actions +
             static_cast<std::uint64_t>(done[step]);
    };
    const auto answered = [&](auto output) {
      if (machines_[at].supplemented)
        witnesses_[at].template ask<ranked>(trace, rank, known_[at], known_.front(), paired, output);
      else
        witnesses_[at].template ask<ranked>(trace, rank, known_[at], trace.steps, plain, output);
    };
    switch (const Id column = machines_[at].answers_with; column) {
      case next_observation:
        answered([next = trace.observation + 1](std::size_t step) { return next[step]; });
        break;
      case whether_terminated:
        answered([last = trace.steps - 1, ends = static_cast<Id>(trace.terminated())](std::size_t step) {
          return step == last ? ends : 0;
        });
        break;
      default:
        answered([codes = traces_.outputs[index(column)].data() + trace.first](std::size_t step) {
          return codes[step];
        });
    }
  }

  [[nodiscard]] std::uint64_t situation(const OneTrace& trace, std::size_t step) const {
    auto number = static_cast<std::uint64_t>(trace.observation[step]);
    for (std::size_t at = 0; at < machines_.size(); ++at)
      number = number * static_cast<std::uint64_t>(machines_[at].states) +
               static_cast<std::uint64_t>(witnesses_[at].states()[step]);
    return number * static_cast<std::uint64_t>(traces_.actions) + static_cast<std::uint64_t>(trace.action[step]);
  }

  void count_situation(std::uint64_t number, std::uint32_t times) {
    Store::Tally& tally = situations_.tally(situations_.at(number));
    tally.output = 0;
    tally.count += times;
  }

  [[nodiscard]] std::int64_t queries() const {
    return std::int64_t{traces_.observations} * std::int64_t{traces_.actions};
  }
  [[nodiscard]] std::int64_t asked_of(const ReplayedMachine& machine) const {
    if (!wanted_.answers) return 0;
    return machine.supplemented ? queries() * machines_.front().states : queries();
  }
  [[nodiscard]] std::int64_t all_situations() const {
    std::int64_t number = queries();
    for (const ReplayedMachine& machine : machines_) number *= machine.states;
    return number;
  }

  const TraceColumns& traces_;
  Reading reading_;
  std::span<const ReplayedMachine> machines_;
  Wanted wanted_;
  bool counted_;  // by the answers of the last machine
  std::uint64_t first_states_;
  Store situations_;  // only where they are not counted by answers
  std::vector<Witness> witnesses_;
  std::vector<std::size_t> known_;  // for how many steps of the trace each machine's state is known
  std::map<std::int64_t, std::int64_t> endings_;
};

}  // namespace

bool answers_count_situations(std::span<const ReplayedMachine> machines) {
  return machines.size() == 1 || (machines.size() == 2 && machines[1].supplemented);
}

Replay replay(const TraceColumns& traces, std::span<const Id> rank, Reading reading,
              std::span<const ReplayedMachine> machines, Wanted wanted, unsigned threads) {
  const std::vector<std::size_t> cuts = cut(traces, machines.size(), threads);
  std::vector<std::vector<Id>> states;
  if (wanted.states) states.assign(machines.size(), std::vector<Id>(index(traces.offsets.back()), none));
  std::vector<Witnesses> parts;
  parts.reserve(cuts.size());
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) parts.emplace_back(traces, reading, machines, wanted);
  in_parallel(parts.size(), [&](std::size_t part) {
    for (std::size_t at = cuts[part]; at < cuts[part + 1]; ++at) {
      const auto trace = static_cast<Id>(at);
      if (rank.empty())
        parts[part].walk<false>(trace, trace, states);
      else
        parts[part].walk<true>(trace, rank[at], states);
    }
  });
  for (std::size_t part = 1; part < parts.size(); ++part) parts.front().add(parts[part]);
  Replay shown = parts.front().shown();
  for (std::size_t at = 0; at < states.size(); ++at) shown.machines[at].states = std::move(states[at]);
  return shown;
}

}  // namespace resolvent
