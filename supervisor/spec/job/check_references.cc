#include "supervisor/spec/job/check_references.h"

#include <utility>
#include <vector>

#include "supervisor/core/spec/expansion.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a part of a scalar, where it stands in the file as it was read; else the scalar's.
Place part_of(const YamlNode& node, std::size_t offset, std::size_t length) {
  if (node.quoted || node.place.length != node.text.size()) return node.place;
  Place part = node.place;
  part.column += static_cast<std::uint32_t>(offset);
  part.length = static_cast<std::uint32_t>(length);
  return part;
}

std::string one_of(const ReferenceFault& fault, std::string_view before, std::string_view none) {
  if (fault.known.empty()) return std::string(none);
  std::vector<std::string> plain;
  for (const std::string& word : fault.known) plain.push_back(word == "port.NAME" ? "port" : word);
  if (const auto guess = nearest(fault.word, plain); guess && *guess != "port") {
    return text("did you mean `$(", before, *guess, ")`?");
  }
  std::vector<std::string> whole;
  for (const std::string& word : fault.known) whole.push_back(text("$(", before, word, ")"));
  return text("there is: ", join(whole, ", "));
}

Fault words_for(const ReferenceFault& fault, const Reference& reference, const std::string& written,
                const MeshSpec& reader) {
  const bool self = reference.path[0] == "self";
  const std::string before = self ? "self." : text("mesh.", fault.mesh, ".");
  switch (fault.kind) {
    case ReferenceFault::Kind::kNotClosed:
      return {.message = text("`", written, "` is not closed"), .label = "needs a `)`", .help = ""};
    case ReferenceFault::Kind::kUnknownField:
      return {.message = text("`", written, "` names nothing"),
              .label = self ? "not known of a rank" : "not known of a mesh",
              .help = one_of(fault, before, "")};
    case ReferenceFault::Kind::kUnknownMesh: {
      const auto guess = nearest(fault.word, fault.known);
      return {.message = text("`", written, "` names a mesh that this job does not have"),
              .label = "no such mesh",
              .help = guess ? text("did you mean `", *guess, "`?") : text("the meshes are: ", join(fault.known, ", "))};
    }
    case ReferenceFault::Kind::kUnknownPort:
      return {
          .message = text("`", written, "` names a port that mesh `", fault.mesh, "` does not have"),
          .label = "not one of its `ports`",
          .help = one_of(fault, before + "port.", text("add `ports: {", fault.word, ": auto}` to `", fault.mesh, "`"))};
    case ReferenceFault::Kind::kBadVariable:
      return {.message = text("`", written, "` names no environment variable"),
              .label = "letters, digits and _, no digit first",
              .help = ""};
    case ReferenceFault::Kind::kNotYetStarted:
      return {.message = text("`", written, "` may not be known yet when `", reader.name, "` starts"),
              .label = fault.mesh == reader.name ? "the gangs of a mesh do not wait for each other"
                                                 : "that port is chosen when its mesh starts",
              .help = fault.mesh == reader.name
                          ? "a mesh of one gang, or a port with a number, would work"
                          : text("`depends_on: [", fault.mesh, "]` for `", reader.name, "` would work")};
  }
  return {};
}

class ReferenceChecker {
 public:
  ReferenceChecker(const JobSpec& job, MeshId mesh, Report& report) : job_(job), mesh_(mesh), report_(report) {}

  void check(const YamlNode& node) {
    for (const ExpansionPiece& piece : parse_expansion(node.text)) {
      if (!piece.reference) continue;
      const ReadReference read = read_reference(*piece.reference, job_, mesh_);
      if (read.meaning) continue;
      const std::string written = node.text.substr(piece.reference->offset, piece.reference->length);
      report_.error("E0215", part_of(node, piece.reference->offset, piece.reference->length),
                    words_for(read.fault, *piece.reference, written, job_.meshes[mesh_.value()]));
    }
  }

  void check_all(const YamlNode* node) {
    if (node == nullptr) return;
    for (const YamlNode& item : node->items) check(item);
  }

  // It runs once for all ranks of a host, by bash, which has a `$(…)` of its own.
  void refuse(const YamlNode* node) {
    if (node == nullptr || !has_references(node->text)) return;
    const ExpansionText pieces = parse_expansion(node->text);
    for (const ExpansionPiece& piece : pieces) {
      if (!piece.reference) continue;
      report_.error("E0215", part_of(*node, piece.reference->offset, piece.reference->length),
                    {.message = "nothing is expanded in `setup`: it runs once on a host, for all of its ranks",
                     .label = "bash would run this as a command",
                     .help = "`env` and `program` know it"});
      return;
    }
  }

 private:
  const JobSpec& job_;
  MeshId mesh_;
  Report& report_;
};

}  // namespace

void check_references(const JobSpec& job, const YamlNode& meshes, Report& report) {
  for (std::uint32_t m = 0; m < job.meshes.size(); ++m) {
    const YamlNode& node = meshes.items[m];
    ReferenceChecker checker(job, MeshId(m), report);
    checker.check_all(value_of(&node, "wrap"));
    checker.check_all(value_of(&node, "program"));
    checker.check_all(value_of(&node, "env"));
    if (const YamlNode* workdir = value_of(&node, "workdir")) checker.check(*workdir);
    checker.refuse(value_of(&node, "setup"));
  }
}

void refuse_references_of_prepare(const YamlNode* words, Report& report) {
  if (words == nullptr || !words->is(YamlNode::Kind::kList)) return;
  for (const YamlNode& word : words->items) {
    for (const ExpansionPiece& piece : parse_expansion(word.text)) {
      if (!piece.reference) continue;
      report.error("E0215", part_of(word, piece.reference->offset, piece.reference->length),
                   {.message = "nothing is expanded in `spares.prepare`: a spare has no rank",
                    .label = "the program would get this as it is written",
                    .help = ""});
    }
  }
}

}  // namespace monarch
