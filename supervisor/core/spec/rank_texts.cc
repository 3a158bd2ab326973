#include "supervisor/core/spec/rank_texts.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

MeshTexts compile_texts(const JobSpec& spec, MeshId id) {
  const MeshSpec& mesh = spec.meshes[id.value()];
  MeshTexts texts;
  for (const auto* part : {&mesh.wrap, &mesh.program}) {
    for (const std::string& word : *part) texts.argv.push_back(compile_expansion(word, spec, id));
  }
  for (const auto& [name, value] : mesh.env) texts.env.emplace(name, compile_expansion(value, spec, id));
  if (mesh.workdir) texts.workdir = compile_expansion(*mesh.workdir, spec, id);
  return texts;
}

bool depends_on_place(const CompiledText& text) {
  return std::any_of(text.begin(), text.end(), [](const CompiledPiece& piece) {
    return piece.meaning && piece.meaning->kind != ReferenceMeaning::Kind::kVariable;
  });
}

ExpandedText expand_for(const CompiledText& text_of, const ReferenceSources& sources, RankId rank) {
  ExpandedText out;
  out.value = expand(text_of, [&](const ReferenceMeaning& meaning) -> std::string {
    const RankId whose = meaning.mesh ? RankId{*meaning.mesh, Rank(0)} : rank;
    const PoolHost& host = sources.hosts[sources.placement.host_of(whose).value()];
    switch (meaning.kind) {
      case ReferenceMeaning::Kind::kRank: return text(rank.rank.value());
      case ReferenceMeaning::Kind::kLocalRank: {
        const GangId gang = sources.spec.meshes[rank.mesh.value()].gang_of(rank.rank);
        const RankRange here = sources.placement.range_of(rank.mesh, gang, sources.placement.host_of(rank));
        return text(rank.rank.value() - here.first);
      }
      case ReferenceMeaning::Kind::kNodeRank: {
        const GangId gang = sources.spec.meshes[rank.mesh.value()].gang_of(rank.rank);
        const RankId first{rank.mesh, Rank(sources.placement.range_of(rank.mesh, gang).first)};
        return text(sources.placement.host_index(rank) - sources.placement.host_index(first));
      }
      case ReferenceMeaning::Kind::kHost: out.open = out.open || host.address.empty(); return host.address;
      case ReferenceMeaning::Kind::kHostName: return host.name;
      case ReferenceMeaning::Kind::kPort: {
        const std::uint16_t port = sources.port ? sources.port(whose, meaning.port) : std::uint16_t{0};
        out.open = out.open || port == 0;
        return text(port);
      }
      case ReferenceMeaning::Kind::kVariable: {
        out.secret = true;
        const auto found = sources.shell.find(meaning.variable);
        return found == sources.shell.end() ? std::string() : found->second;
      }
    }
    return {};
  });
  return out;
}

std::string workdir_of(const MeshTexts& texts, const ReferenceSources& sources, RankId rank) {
  std::string base = base_directory(sources.spec);
  if (!texts.workdir) return base;
  ExpandedText whole = expand_for(*texts.workdir, sources, rank);
  if (whole.value.starts_with('/') || base == ".") return std::move(whole.value);
  return text(base, "/", whole.value);
}

}  // namespace monarch
