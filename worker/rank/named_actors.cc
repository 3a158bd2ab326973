#include "worker/rank/named_actors.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include <monarch/codec.hpp>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr const char* kMaker = "monarch";
constexpr const char* kMake = "make";

}  // namespace

Result<std::unique_ptr<NamedActors>> NamedActors::open(const RankProcess& process, const Plugin& plugin,
                                                       const RankHost& host) {
  static const monarch_endpoint_v1 endpoint{
      .struct_size = sizeof endpoint, .at_most = 0, .name = kMake, .signature = "*", .invoke = &NamedActors::on_make};
  // It is made of the place that it is given, which has this object in it.
  static const monarch_class_v1 maker{.struct_size = sizeof maker,
                                      .endpoint_count = 1,
                                      .name = kMaker,
                                      .endpoints = &endpoint,
                                      .create = [](const monarch_host_v1*, const monarch_place_v1* place, char*,
                                                   std::size_t) { return const_cast<void*>(place->args.data); },
                                      .destroy = [](void*) {}};
  std::unique_ptr<NamedActors> named(new NamedActors(process, plugin, host));
  monarch_place_v1 place{};
  place.args.data = named.get();
  MONARCH_ASSIGN(named->maker_, ActorThread::make(maker, host.table(), place));
  return named;
}

NamedActors::~NamedActors() { (void)stop(Duration::forever()); }

bool NamedActors::stop(Duration patience) {
  if (maker_ == nullptr) return true;
  maker_->begin_stop();
  if (!maker_->join(patience)) return false;  // nothing is made from here on
  for (auto& [name, named] : made_) named.actor->begin_stop();
  return std::all_of(made_.begin(), made_.end(), [patience](auto& one) { return one.second.actor->join(patience); });
}

ActorThread* NamedActors::find(const std::string& name) {
  if (name == kMaker) return maker_.get();
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(name);
  return found == made_.end() ? nullptr : found->second.actor.get();
}

PostHello NamedActors::hello(const RankPlace& place) {
  PostHello hello;
  hello.version = kPostDoorVersion;
  hello.mesh = place.mesh;
  hello.rank = place.rank;
  hello.generation = place.generation;
  hello.serves = true;
  hello.actors = {{.name = "*", .class_name = "*", .endpoints = {}}};
  return hello;
}

Status NamedActors::make(const std::string& name, const std::string& class_name, std::string args) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = made_.find(name);
    if (found != made_.end()) {
      if (found->second.class_name == class_name) return {};
      return Error{ErrorCode::kInvalid, text("actor ", name, " is a ", found->second.class_name, ", no ", class_name)};
    }
  }
  MONARCH_ASSIGN(const monarch_class_v1* const of, plugin_.find_class(class_name));
  const PlaceTexts texts(process_, name, std::move(args));
  MONARCH_ASSIGN(auto actor, ActorThread::make(*of, host_.table(), texts.place()));
  const std::lock_guard lock(mutex_);
  made_.emplace(name, Named{class_name, std::move(actor)});
  return {};
}

void NamedActors::on_make(void* self, monarch_bytes_v1 arguments, const monarch_host_v1* host,
                          monarch_delivery_v1* delivery) {
  std::tuple<std::string, std::string, codec::Bytes> asked;
  codec::DecodeError error;
  const std::string_view bytes(static_cast<const char*>(arguments.data), arguments.size);
  if (!codec::decode(bytes, asked, error)) {
    return host->fail(delivery, "monarch::BadArguments", error.what.c_str(), "");
  }
  auto& [name, class_name, args] = asked;
  const Status made = static_cast<NamedActors*>(self)->make(name, class_name, std::move(args.data));
  if (!made.ok()) {
    const std::string words = text("actor ", name, " could not be made: ", made.error().message);
    return host->fail(delivery, "monarch::NotMade", words.c_str(), "");
  }
  constexpr std::string_view kNil = "\xc0";
  host->reply(delivery, {kNil.data(), kNil.size()});
}

}  // namespace monarch
