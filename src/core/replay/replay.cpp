#include "replay.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "parallel.hpp"

namespace resolvent {
namespace {

std::size_t index(std::int64_t id) { return static_cast<std::size_t>(id); }

// Split traces into parts with about the same number of steps; return the boundaries.
std::vector<std::size_t> cut(const TraceColumns& traces, std::size_t machines, unsigned threads) {
  std::vector<std::size_t> cuts{0};
  const Row steps = traces.offsets.back();
  const auto parts = static_cast<Row>(worth_while(static_cast<std::size_t>(steps) * machines, threads));
  for (std::size_t at = 0; at < traces.traces(); ++at)
    if (traces.offsets[at] * parts >= steps * static_cast<Row>(cuts.size()) && static_cast<Row>(cuts.size()) < parts)
      cuts.push_back(at);
  cuts.push_back(traces.traces());
  return cuts;
}

// (state, query) → output and count. A dense table if it is small, else a hash table. Outputs and counts,
// which every step needs, are apart from locations, so that more of them fit the cache. The state after the
// last one is "unknown".
class CountTable {
 public:
  struct Tally {
    Id output = none;
    std::uint32_t count = 0;
  };
  struct Locations {
    Location first;
    Location earliest;
    Id rank = none;  // of the trace of `first`
  };

  // `steps` limits the number of keys: a large dense table does not pay off for few of them.
  CountTable(std::int64_t states, std::int64_t queries, Row steps)
      : queries_(static_cast<std::uint64_t>(queries)),
        dense_(static_cast<std::uint64_t>(states) <=
               std::clamp<std::uint64_t>(4 * static_cast<std::uint64_t>(steps), dense_at_least, dense_at_most) /
                   std::max<std::uint64_t>(queries_, 1)) {
    if (dense_) {
      tallies_.resize(static_cast<std::size_t>(static_cast<std::uint64_t>(states) * queries_));
      locations_.resize(tallies_.size());
    } else {
      resize(1024);
    }
  }

  [[nodiscard]] std::uint64_t key(Id state, std::uint64_t query) const {
    return static_cast<std::uint64_t>(state) * queries_ + query;
  }

  // Return the index of a key, which is valid until a new key is added.
  std::size_t at(std::uint64_t key) { return dense_ ? static_cast<std::size_t>(key) : slot_of(key); }
  Tally& tally(std::size_t at) { return tallies_[at]; }
  Locations& locations(std::size_t at) { return locations_[at]; }

  // Return all entries, by state and query.
  [[nodiscard]] std::vector<OutputCount> listed() const {
    std::vector<OutputCount> all;
    const auto add = [&](std::uint64_t key, std::size_t at) {
      if (const Tally tally = tallies_[at]; tally.output != none)
        all.push_back(
            {static_cast<Id>(key / queries_),
             static_cast<std::int64_t>(key % queries_),
             {tally.output, tally.count, locations_[at].first, locations_[at].earliest, locations_[at].rank}});
    };
    if (dense_) {
      for (std::size_t key = 0; key < tallies_.size(); ++key) add(key, key);
      return all;
    }
    for (const Slot& slot : slots_)
      if (slot.key != empty) add(slot.key, slot.index);
    std::ranges::sort(all, {}, [](const OutputCount& count) { return std::tuple(count.state, count.query); });
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
        locations_.emplace_back();
        break;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at].index;
  }

  void resize(std::size_t size) {  // `size` is a power of two
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
  std::vector<Locations> locations_;
  std::vector<Slot> slots_;  // unused if dense
  unsigned shift_ = 64;
};

// Keep the location with fewer steps before it, the first of equals.
void take_earlier(Location& location, const Location& candidate) {
  if (location.trace == none || (candidate.trace != none && candidate.step < location.step)) location = candidate;
}

// Keep the location in the trace of lower rank.
void take_lower(Location& location, Id& rank, const Location& candidate, Id candidate_rank) {
  if (candidate_rank >= rank) return;
  location = candidate;
  rank = candidate_rank;
}

void add_to(Occurrence& seen, const Occurrence& more) {
  if (seen.count == 0) {
    seen = more;
    return;
  }
  seen.count += more.count;
  take_lower(seen.location, seen.rank, more.location, more.rank);
  take_earlier(seen.earliest, more.earliest);
}

// Counts of one machine.
class MachineReplayer {
 public:
  MachineReplayer(const ReplayedMachine& machine, Id labels, std::int64_t queries, Row steps, ReplayOptions options)
      : machine_(machine),
        labels_(labels),
        options_(options),
        outputs_(std::int64_t{machine.states} + (options.unknown_states ? 1 : 0), queries, steps),
        transitions_(machine.transitions.size()) {
    next_row_.reserve(machine.transitions.size());
    for (const Id state : machine.transitions) next_row_.push_back(state == none ? 0 : index(state) * index(labels));
  }

  // Find the state at each step of a trace; return the number of steps with a known state.
  template <bool ranked>
  std::size_t walk(const OneTrace& trace, Id rank, Reading reading) {
    if (trace.steps > states_.size()) states_.resize(trace.steps);
    // Local copies: otherwise the compiler must assume that members change with every count.
    const Id* const transitions = machine_.transitions.data();
    const std::size_t* const next_row = next_row_.data();
    const std::size_t lag = index(reading.lag);
    const bool earliest = options_.earliest;
    Occurrence* const seen_at = transitions_.data();
    Id* const state_at = states_.data();
    const std::size_t unread = std::min(index(reading.first + reading.lag), trace.steps);
    std::fill_n(state_at, unread, 0);
    std::size_t row = 0;
    for (std::size_t step = unread; step < trace.steps; ++step) {
      const std::size_t entry = row + index(trace.label[step - lag]);
      const Id state = transitions[entry];
      row = next_row[entry];  // the only dependency on the previous step
      state_at[step] = state;
      if (seen_at[entry].count++ == 0) {
        seen_at[entry].output = state;
        seen_at[entry].location = seen_at[entry].earliest = {trace.number, static_cast<Id>(step)};
        seen_at[entry].rank = rank;
      } else {
        if constexpr (ranked)
          take_lower(seen_at[entry].location, seen_at[entry].rank, {trace.number, static_cast<Id>(step)}, rank);
        if (earliest) take_earlier(seen_at[entry].earliest, {trace.number, static_cast<Id>(step)});
      }
      if (state == none) {
        std::fill(state_at + step, state_at + trace.steps, none);
        return step;
      }
    }
    return trace.steps;
  }

  [[nodiscard]] const std::vector<Id>& states() const { return states_; }

  // Count the outputs of a trace: up to step `known` by state, then as of an unknown state if that is
  // wanted; in any case only before step `queried`. `query(t)` and `output(t)` return the query and the
  // output at a step.
  template <bool ranked, typename Query, typename Output>
  void count_outputs(const OneTrace& trace, Id rank, std::size_t known, std::size_t queried, Query query,
                     Output output) {
    const Id* const state_at = states_.data();
    const std::size_t in_states = std::min(known, queried);
    if (options_.earliest) {
      for (std::size_t step = 0; step < in_states; ++step)
        count_output<true, ranked>(state_at[step], query(step), output(step), trace.number, step, rank);
    } else {
      for (std::size_t step = 0; step < in_states; ++step)
        count_output<false, ranked>(state_at[step], query(step), output(step), trace.number, step, rank);
    }
    if (!options_.unknown_states) return;
    for (std::size_t step = in_states; step < queried; ++step)
      count_output<true, ranked>(machine_.states, query(step), output(step), trace.number, step, rank);
    unqueried_ += static_cast<std::int64_t>(trace.steps - queried);
  }

  // Add the counts of later traces.
  void add(const MachineReplayer& later) {
    for (std::size_t at = 0; at < transitions_.size(); ++at)
      if (later.transitions_[at].count > 0) add_to(transitions_[at], later.transitions_[at]);
    for (const OutputCount& more : later.outputs_.listed()) add_outputs(more);
    for (const auto& [key, seen] : later.conflicts_) add_outputs({std::get<0>(key), std::get<1>(key), seen});
    unqueried_ += later.unqueried_;
  }

  [[nodiscard]] MachineReplay result() const {
    MachineReplay all{outputs_.listed(), {}, {}, unqueried_, {}};
    for (const auto& [key, seen] : conflicts_) all.conflicts.push_back({std::get<0>(key), std::get<1>(key), seen});
    for (auto* rows : {&all.outputs, &all.conflicts})
      for (OutputCount& count : *rows)
        if (count.state == machine_.states) count.state = none;
    for (std::size_t at = 0; at < transitions_.size(); ++at)
      if (transitions_[at].count > 0)
        all.transitions.push_back(
            {static_cast<Id>(at / index(labels_)), static_cast<Id>(at % index(labels_)), transitions_[at]});
    return all;
  }

 private:
  template <bool earliest, bool ranked>
  void count_output(Id state, std::uint64_t query, Id output, Id trace, std::size_t step, Id rank) {
    const std::size_t at = outputs_.at(outputs_.key(state, query));
    const Location here{trace, static_cast<Id>(step)};
    if (CountTable::Tally& tally = outputs_.tally(at); tally.output == output) [[likely]] {
      ++tally.count;
      if constexpr (ranked) take_lower(outputs_.locations(at).first, outputs_.locations(at).rank, here, rank);
      if constexpr (earliest) take_earlier(outputs_.locations(at).earliest, here);
    } else if (tally.output == none) {
      tally = {output, 1};
      outputs_.locations(at) = {here, here, rank};
    } else {
      add_to(conflicts_[{state, static_cast<std::int64_t>(query), output}], {output, 1, here, here, rank});
    }
  }

  void add_outputs(const OutputCount& more) {
    const std::size_t at = outputs_.at(outputs_.key(more.state, static_cast<std::uint64_t>(more.query)));
    if (CountTable::Tally& tally = outputs_.tally(at); tally.output == more.seen.output) {
      tally.count += more.seen.count;
      take_lower(outputs_.locations(at).first, outputs_.locations(at).rank, more.seen.location, more.seen.rank);
      take_earlier(outputs_.locations(at).earliest, more.seen.earliest);
    } else if (tally.output == none) {
      tally = {more.seen.output, more.seen.count};
      outputs_.locations(at) = {more.seen.location, more.seen.earliest, more.seen.rank};
    } else {
      add_to(conflicts_[{more.state, more.query, more.seen.output}], more.seen);
    }
  }

  ReplayedMachine machine_;
  Id labels_;
  ReplayOptions options_;
  std::vector<std::size_t> next_row_;  // first entry of the target's row
  CountTable outputs_;
  std::vector<Occurrence> transitions_;
  std::map<std::tuple<Id, std::int64_t, Id>, Occurrence> conflicts_;
  std::int64_t unqueried_ = 0;
  std::vector<Id> states_;  // of the last trace
};

// Counts of all machines for one part of the traces.
class Replayer {
 public:
  Replayer(const TraceColumns& traces, Reading reading, std::span<const ReplayedMachine> machines,
           ReplayOptions options)
      : traces_(traces),
        reading_(reading),
        machines_(machines),
        options_(options),
        counted_(outputs_count_augmented_states(machines)),
        first_states_(machines.empty() ? 1 : static_cast<std::uint64_t>(machines.front().states)),
        augmented_states_(1, counted_ || !options.augmented_states ? 0 : augmented_state_bound(),
                          traces.offsets.back()) {
    for (const ReplayedMachine& machine : machines)
      machines_replayed_.emplace_back(machine, traces.labels, query_bound(machine), traces.offsets.back(), options);
    known_.resize(machines.size());
  }

  // Replay one trace; write the states at its steps unless `states` is empty.
  template <bool ranked>
  void walk(Id number, Id rank, std::vector<std::vector<Id>>& states) {
    const OneTrace trace(traces_, number);
    std::size_t all_known = trace.steps;
    for (std::size_t at = 0; at < machines_.size(); ++at) {
      known_[at] = machines_replayed_[at].template walk<ranked>(trace, rank, reading_);
      all_known = std::min(all_known, known_[at]);
      if (!states.empty())
        std::copy_n(machines_replayed_[at].states().begin(), trace.steps,
                    states[at].begin() + static_cast<Row>(trace.first));
    }
    if (!options_.outputs) return;
    for (std::size_t at = 0; at < machines_.size(); ++at) count_outputs<ranked>(at, trace, rank);
    if (!options_.augmented_states) return;
    if (!counted_)
      for (std::size_t step = 0; step < all_known; ++step) count_augmented_state(augmented_state(trace, step), 1);
    if (all_known == trace.steps && trace.terminated())
      ++endings_[static_cast<std::int64_t>(augmented_state(trace, trace.steps - 1))];
  }

  void add(const Replayer& later) {
    for (std::size_t at = 0; at < machines_replayed_.size(); ++at)
      machines_replayed_[at].add(later.machines_replayed_[at]);
    for (const OutputCount& more : later.augmented_states_.listed())
      count_augmented_state(static_cast<std::uint64_t>(more.query), more.seen.count);
    for (const auto& [augmented_state, count] : later.endings_) endings_[augmented_state] += count;
  }

  [[nodiscard]] Replay result() const {
    Replay all;
    for (const MachineReplayer& replayer : machines_replayed_) all.machines.push_back(replayer.result());
    if (counted_) {
      for (const auto& [augmented_state, ended] : endings_) all.augmented_states.push_back({augmented_state, 0, ended});
    } else {
      for (const OutputCount& count : augmented_states_.listed()) {
        const auto ending = endings_.find(count.query);
        all.augmented_states.push_back({count.query, count.seen.count, ending == endings_.end() ? 0 : ending->second});
      }
    }
    return all;
  }

 private:
  template <bool ranked>
  void count_outputs(std::size_t at, const OneTrace& trace, Id rank) {
    const auto actions = static_cast<std::uint64_t>(traces_.actions);
    const auto plain = [actions, seen = trace.observation, done = trace.action](std::size_t step) {
      return static_cast<std::uint64_t>(seen[step]) * actions + static_cast<std::uint64_t>(done[step]);
    };
    const auto paired = [actions, seen = trace.observation, done = trace.action, states = first_states_,
                         state_at = machines_replayed_.front().states().data()](std::size_t step) {
      return (static_cast<std::uint64_t>(seen[step]) * states + static_cast<std::uint64_t>(state_at[step])) * actions +
             static_cast<std::uint64_t>(done[step]);
    };
    const auto count = [&](auto output) {
      if (machines_[at].supplemented)
        machines_replayed_[at].template count_outputs<ranked>(trace, rank, known_[at], known_.front(), paired, output);
      else
        machines_replayed_[at].template count_outputs<ranked>(trace, rank, known_[at], trace.steps, plain, output);
    };
    switch (const Id column = machines_[at].output_column; column) {
      case next_observation:
        count([next = trace.observation + 1](std::size_t step) { return next[step]; });
        break;
      case whether_terminated:
        count([last = trace.steps - 1, ends = static_cast<Id>(trace.terminated())](std::size_t step) {
          return step == last ? ends : 0;
        });
        break;
      default:
        count([codes = traces_.outputs[index(column)].data() + trace.first](std::size_t step) { return codes[step]; });
    }
  }

  [[nodiscard]] std::uint64_t augmented_state(const OneTrace& trace, std::size_t step) const {
    auto number = static_cast<std::uint64_t>(trace.observation[step]);
    for (std::size_t at = 0; at < machines_.size(); ++at)
      number = number * static_cast<std::uint64_t>(machines_[at].states) +
               static_cast<std::uint64_t>(machines_replayed_[at].states()[step]);
    return number * static_cast<std::uint64_t>(traces_.actions) + static_cast<std::uint64_t>(trace.action[step]);
  }

  void count_augmented_state(std::uint64_t number, std::uint32_t times) {
    CountTable::Tally& tally = augmented_states_.tally(augmented_states_.at(number));
    tally.output = 0;
    tally.count += times;
  }

  [[nodiscard]] std::int64_t queries() const {
    return std::int64_t{traces_.observations} * std::int64_t{traces_.actions};
  }
  [[nodiscard]] std::int64_t query_bound(const ReplayedMachine& machine) const {
    if (!options_.outputs) return 0;
    return machine.supplemented ? queries() * machines_.front().states : queries();
  }
  [[nodiscard]] std::int64_t augmented_state_bound() const {
    std::int64_t number = queries();
    for (const ReplayedMachine& machine : machines_) number *= machine.states;
    return number;
  }

  const TraceColumns& traces_;
  Reading reading_;
  std::span<const ReplayedMachine> machines_;
  ReplayOptions options_;
  bool counted_;  // augmented states are counted by the outputs of the last machine
  std::uint64_t first_states_;
  CountTable augmented_states_;  // unused if `counted_`
  std::vector<MachineReplayer> machines_replayed_;
  std::vector<std::size_t> known_;  // number of steps of the trace with a known state, by machine
  std::map<std::int64_t, std::int64_t> endings_;
};

}  // namespace

bool outputs_count_augmented_states(std::span<const ReplayedMachine> machines) {
  return machines.size() == 1 || (machines.size() == 2 && machines[1].supplemented);
}

Replay replay(const TraceColumns& traces, std::span<const Id> rank, Reading reading,
              std::span<const ReplayedMachine> machines, ReplayOptions options, unsigned threads) {
  const std::vector<std::size_t> cuts = cut(traces, machines.size(), threads);
  std::vector<std::vector<Id>> states;
  if (options.states) states.assign(machines.size(), std::vector<Id>(index(traces.offsets.back()), none));
  std::vector<Replayer> parts;
  parts.reserve(cuts.size());
  for (std::size_t part = 0; part + 1 < cuts.size(); ++part) parts.emplace_back(traces, reading, machines, options);
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
  Replay result = parts.front().result();
  for (std::size_t at = 0; at < states.size(); ++at) result.machines[at].states = std::move(states[at]);
  return result;
}

void walk_states(std::span<const Id> transitions, Id labels, std::span<const Id> beta, std::span<const Row> offsets,
                 std::span<Id> states) {
  for (std::size_t trace = 0; trace + 1 < offsets.size(); ++trace) {
    Id state = 0;
    const auto end = static_cast<std::size_t>(offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(offsets[trace]); row < end; ++row) {
      const Id label = beta[row];
      if (label != none && state != none)
        state = label < labels ? transitions[static_cast<std::size_t>(state) * static_cast<std::size_t>(labels) +
                                             static_cast<std::size_t>(label)]
                               : none;
      states[row] = state;
    }
  }
}

}  // namespace resolvent
