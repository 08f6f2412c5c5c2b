// Columns to and from Python: checked on the way in, not copied on the way out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "samples.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using resolvent::Id;
using resolvent::Row;

// A one-dimensional, contiguous NumPy array of exactly this type. The type is checked before nanobind
// imports the array, which crashes for some types, such as dates.
template <typename T>
struct Column {
  using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  Array array;

  [[nodiscard]] const T* data() const { return array.data(); }
  [[nodiscard]] std::size_t size() const { return array.size(); }
};

template <typename T>
struct nb::detail::type_caster<Column<T>> {
  NB_TYPE_CASTER(Column<T>, const_name("numpy.ndarray"))

  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    if (!has_type(source)) return false;
    make_caster<typename Column<T>::Array> caster;
    if (!caster.from_python(source, flags & ~static_cast<std::uint8_t>(cast_flags::convert), cleanup)) return false;
    value.array = caster.value;
    return true;
  }

 private:
  static bool has_type(handle source) noexcept {
    static_assert(std::endian::native == std::endian::little || std::endian::native == std::endian::big);
    const char type_name[] = {std::endian::native == std::endian::little ? '<' : '>',
                              std::is_floating_point_v<T> ? 'f' : 'i', sizeof(T) == 4 ? '4' : '8', '\0'};
    PyObject* type = PyObject_GetAttrString(source.ptr(), "dtype");
    PyObject* name = type == nullptr ? nullptr : PyObject_GetAttrString(type, "str");
    const bool same =
        name != nullptr && PyUnicode_Check(name) != 0 && PyUnicode_CompareWithASCIIString(name, type_name) == 0;
    Py_XDECREF(name);
    Py_XDECREF(type);
    PyErr_Clear();
    return same;
  }
};

using Ids = Column<Id>;
using Rows = Column<Row>;
using Reals = Column<double>;

template <typename T>
std::span<const T> span_of(const Column<T>& column) {
  return {column.data(), column.size()};
}

inline void require(bool condition, const char* what) {
  if (!condition) throw nb::value_error(what);
}

inline void check_ids(std::span<const Id> ids, const char* what) {
  Id least = 0;
  for (const Id id : ids) least = std::min(least, id);
  require(least >= resolvent::none, what);
}

// Every code must be at least `least` and below `size`.
inline void check_codes(std::span<const Id> codes, std::int64_t size, Id least) {
  require(size >= 0, "the size must be at least 0");
  // As unsigned differences from `least`, one comparison covers both bounds.
  const auto allowed = static_cast<std::uint32_t>(std::min<std::int64_t>(size, std::int64_t{1} << 31) - least);
  std::uint32_t outside = 0;
  for (const Id code : codes)
    outside |= static_cast<std::uint32_t>(code) - static_cast<std::uint32_t>(least) >= allowed ? 1U : 0U;
  require(outside == 0, "a column holds a code that is out of range");
}

// Return the number of states; transitions have rows of `labels` targets, each of which must exist.
inline std::size_t checked_states(std::span<const Id> transitions, Id labels) {
  require(labels >= 0, "labels must be at least 0");
  require(labels == 0 ? transitions.empty() : transitions.size() % static_cast<std::size_t>(labels) == 0,
          "transitions must hold one row of `labels` targets per state");
  check_ids(transitions, "transitions holds a state below -1");
  const auto states = labels == 0 ? std::size_t{1} : transitions.size() / static_cast<std::size_t>(labels);
  require(states >= 1, "a machine needs at least one state");
  for (const Id target : transitions)
    require(target < static_cast<Id>(states), "transitions leads to a state that does not exist");
  return states;
}

inline void check_offsets(std::span<const Row> offsets, std::size_t rows) {
  require(!offsets.empty() && offsets.front() == 0, "offsets must begin with 0");
  for (std::size_t at = 1; at < offsets.size(); ++at) require(offsets[at - 1] <= offsets[at], "offsets must not fall");
  require(static_cast<std::size_t>(offsets.back()) == rows, "offsets must end with the number of rows");
}

template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return {owned->data(), {owned->size()}, owner};
}

template <typename Record, typename Field>
auto column(const std::vector<Record>& records, Field Record::* field) {
  std::vector<Field> values;
  values.reserve(records.size());
  for (const Record& record : records) values.push_back(record.*field);
  return array(std::move(values));
}
