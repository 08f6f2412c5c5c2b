// How this core was built.

#include <nanobind/nanobind.h>

namespace nb = nanobind;

#define TEXT_OF(name) #name
#define VALUE_OF(name) TEXT_OF(name)

void bind_build(nb::module_& module) {
  nb::dict build;
  build["compiler"] = BUILD_COMPILER;
  build["flags"] = BUILD_FLAGS;
  build["type"] = BUILD_TYPE;
  build["target"] = BUILD_TARGET;
  build["nanobind"] = VALUE_OF(NB_VERSION_MAJOR) "." VALUE_OF(NB_VERSION_MINOR) "." VALUE_OF(NB_VERSION_PATCH);
  module.attr("BUILD") = build;
}
