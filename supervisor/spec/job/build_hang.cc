#include "supervisor/spec/job/build_hang.h"

#include "supervisor/spec/yaml/values.h"

namespace monarch {

HangPolicy build_hang(const YamlNode* node, const HangPolicy& base) {
  HangPolicy policy = base;
  const auto action = text_of(node, "action");
  if (action == "restart") policy.action = HangAction::kRestart;
  if (action == "report") policy.action = HangAction::kReport;
  const YamlNode* phases = value_of(node, "phases");
  if (phases == nullptr || !phases->is(YamlNode::Kind::kMap)) return policy;
  for (const YamlKey& key : phases->keys) {
    if (text_of(phases, key.text) == "auto") {
      policy.phases[key.text] = {};
    } else {
      policy.phases[key.text] = {.longest = duration_or(phases, key.text, Duration::seconds(600)), .written = true};
    }
  }
  return policy;
}

}  // namespace monarch
