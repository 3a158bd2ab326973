#pragma once

// PostFinder: finds the registrars of a mesh's gangs by their cards, which posts keep.
//
// Thread: the pull's; answers come on the thread of the door. Lifetime: within that of the session.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/tensor/registrar_finder.h"
#include "worker/library/card_asks.h"

namespace monarch {

struct FoundMesh {
  std::string name;
  std::uint32_t gangs = 1;
  std::uint32_t gang = 1;  // ranks of each
};

class PostFinder final : public tensor::RegistrarFinder {
 public:
  PostFinder(CardAsks& asks, FoundMesh mesh, tensor::FinderWords words)
      : asks_(asks), mesh_(std::move(mesh)), words_(std::move(words)) {}
  ~PostFinder() override { stop_asking(); }

  void ask(const std::map<std::uint32_t, std::uint64_t>& over) override;
  void stop_asking() override;
  std::string nobody() const override;

 private:
  CardAsks& asks_;
  const FoundMesh mesh_;
  const tensor::FinderWords words_;
  std::vector<std::uint64_t> questions_;
};

}  // namespace monarch
