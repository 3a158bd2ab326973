#pragma once

// Scope: calls that end with their owner. What is deferred, timed or answered later asks first whether the owner is
// still there, and does nothing where it has gone.
//
// Thread: the owner's; who calls a guarded call does so there. Lifetime: the owner's.

#include <memory>
#include <utility>

namespace monarch {

class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Of a function that calls what may end the owner, and looks after that.
  class Watch {
   public:
    explicit Watch(const std::shared_ptr<int>& owner) : owner_(owner) {}
    bool gone() const { return owner_.expired(); }

   private:
    std::weak_ptr<int> owner_;
  };
  Watch watch() const { return Watch(owner_); }

  // `call`, or nothing.
  template <class Call>
  auto guard(Call call) const {
    return [here = watch(), call = std::move(call)](auto&&... given) mutable {
      if (!here.gone()) call(std::forward<decltype(given)>(given)...);
    };
  }

 private:
  std::shared_ptr<int> owner_ = std::make_shared<int>(0);  // owner: this
};

}  // namespace monarch
