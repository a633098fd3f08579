#include "client/tool/hierarchy_options.h"

#include <cstdint>

#include "client/tool/arguments.h"
#include "client/tool/terminal.h"
#include "client/value.h"

namespace tidemark::tool {
namespace {

std::uint32_t ToNumber(const std::string& option, const std::string& text, const char* what) {
  std::uint32_t number = 0;
  if (!client::ParseText(text, &number)) {
    throw UsageError(option + ": \"" + Printable(text) + "\" is no " + what);
  }
  return number;
}

}  // namespace

void AddHierarchyOptions(CLI::App* create, HierarchyOptions& options) {
  create
      ->add_option(
          "--prefixes", options.prefixes,
          "Addresses: lengths of the prefixes to count, e.g. 8,16,24,32; ipv6: 16,32,48,64,128")
      ->option_text("N,N,...");
  create
      ->add_option("--separator", options.separator,
                   "Strings: count prefixes of components between it, e.g. . or /")
      ->option_text("C");
  create->add_option("--depth", options.depth, "With --separator: up to so many components (8)")
      ->option_text("N");
  create->add_flag("--root-last", options.root_last,
                   "With --separator: from the last component, as in www.example.com");
}

void SetHierarchy(const HierarchyOptions& options, client::StreamConfig& config) {
  if (!options.prefixes.empty()) {
    for (const std::string& text : SplitList(options.prefixes)) {
      config.prefix_lengths.push_back(ToNumber("--prefixes", text, "length in bits"));
    }
  }
  config.separator = options.separator;
  config.root_last = options.root_last;
  if (!options.depth.empty()) {
    config.depth = ToNumber("--depth", options.depth, "number of components");
    if (config.depth == 0) throw UsageError("--depth: a hierarchy has a component at least");
  }
  if (config.separator.empty() && (config.depth != 0 || config.root_last)) {
    throw UsageError("--depth and --root-last need --separator");
  }
}

}  // namespace tidemark::tool
