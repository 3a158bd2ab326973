#include "worker/library/tensor_session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/machine.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"
#include "transport/loop/no_signals.h"
#include "transport/tensor/cuda/load.h"
#include "transport/tensor/verbs/libibverbs.h"
#include "transport/tensor/verbs/open_verbs.h"
#include "transport/wire/codec.h"
#include "worker/library/post_finder.h"
#include "worker/library/roster_names.h"
#include "worker/library/tensor_words.h"

namespace monarch {

namespace {

constexpr const char* kCard = "tensors";  // name of the cards
constexpr Duration kPostPatience = Duration::seconds(30);

// Among "shm,verbs,tcp".
bool is_named(const char* words, std::string_view word) {
  return words != nullptr && text(',', words, ',').find(text(',', word, ',')) != std::string::npos;
}

tensor::LinkWays read_ways(const char* transports) {
  tensor::LinkWays ways{.machine = read_boot_id()};
  if (transports == nullptr) return ways;
  ways.shm = is_named(transports, "shm");
  ways.verbs = is_named(transports, "verbs");
  ways.tcp = is_named(transports, "tcp");
  return ways;
}

Error named(const tensor::PullPart& part, const Error& error) {
  return {error.code, text("tensor ", printable(part.tensor.name), ": ", error.message)};
}

// Looked for once, before there are threads of ours.
tensor::VerbsEnd find_verbs(const tensor::LinkWays& ways,
                            const std::function<const char*(const char* name)>& variable) {
  if (!ways.verbs) return {.device = nullptr, .why_not = "verbs is not among `tensors.transports`"};
  auto library = tensor::load_libibverbs();
  if (!library.ok()) return {.device = nullptr, .why_not = library.error().message};
  tensor::DeviceWish wish{.name = {}, .node = tensor::own_node()};
  if (const char* const name = variable("MONARCH_RDMA_DEVICE")) wish.name = name;
  if (const char* const local = variable("LOCAL_RANK")) {
    std::string_view digits = local;
    (void)take_number(digits, wish.local_rank);  // the program may have set its own: 0 then
  }
  return tensor::open_verbs(**library, wish);
}

}  // namespace

TensorSession::TensorSession(RankPlace place, tensor::LinkWays ways, tensor::VerbsEnd verbs, tensor::CudaEnd cuda)
    : place_(std::move(place)),
      ways_(std::move(ways)),
      verbs_(std::move(verbs)),
      cuda_(std::move(cuda)),
      process_(::getpid()),
      asks_(kCard) {}

TensorSession::~TensorSession() = default;

Result<std::unique_ptr<TensorSession>> TensorSession::open(
    const std::function<const char*(const char* name)>& variable) {
  if (variable("MONARCH_RANK") == nullptr && variable(kStandbyVariable.data()) != nullptr) {
    return Error{ErrorCode::kInvalid, "this standby rank has no place yet: open it once gate() has returned"};
  }
  if (variable(kPostVariable.data()) == nullptr && variable("MONARCH_MESH") != nullptr) {
    return Error{ErrorCode::kInvalid, "this job's spec has no `tensors`"};
  }
  MONARCH_ASSIGN(RankPlace place, read_place(variable));
  tensor::LinkWays ways = read_ways(variable(kTensorsVariable.data()));
  tensor::VerbsEnd verbs = find_verbs(ways, variable);
  std::unique_ptr<TensorSession> made(
      new TensorSession(std::move(place), std::move(ways), std::move(verbs),
                        {.find = tensor::load_libcuda,
                         .pins = !is_named(variable(kTensorsVariable.data()), kUnpinnedWord),
                         .say = say_line}));
  TensorSession* const self = made.get();
  PostHello hello;
  hello.mesh = made->place_.mesh;
  hello.rank = made->place_.rank;
  hello.generation = made->place_.generation;
  hello.watches = true;
  const NoSignals none;
  MONARCH_ASSIGN(
      made->door_,
      DoorThread::start(
          made->place_.post, std::move(hello),
          {.came = [self](const DoorThread::Connection& by) { self->came(by); },
           .heard = [self](const DoorThread::Connection& /*by*/, DoorClient::Heard& heard) { self->heard(heard); },
           .ended = [self](const DoorThread::Connection& by, const std::string& /*why*/) { self->asks_.ended(by); }}));
  return made;
}

bool TensorSession::is_news(const std::string& words) {
  const std::lock_guard lock(mutex_);
  return said_.insert(words).second;
}

Status TensorSession::check_process() const {
  if (::getpid() == process_) return {};
  return Error{ErrorCode::kInvalid, "this session was opened before fork(): a child opens its own"};
}

// ---- What the post says.

void TensorSession::came(const DoorThread::Connection& connection) {
  std::optional<PostCard> card;
  {
    const std::lock_guard lock(mutex_);
    card = card_;
  }
  // Where it is not sent the connection has ended, and the next one is told.
  if (card) (void)connection->send(*card);
  asks_.came(connection);
}

PostCard TensorSession::card_message(const tensor::OwnerThread& owner) {
  std::string card = tensor::card_text(owner.card());
  PostCard message;
  message.name = kCard;
  message.text = {.bytes = card.size(), .way = BodyWay::kHere, .here = {std::move(card)}};
  message.key = {owner.key()};
  return message;
}

void TensorSession::heard(DoorClient::Heard& heard) {
  // What it says beside these is for actors.
  (void)route(heard.frame.header, heard.frame.payload,
              when<PostAnswer>([&](PostAnswer&& answer) { asks_.heard(answer, heard.descriptors); }),
              when<PostOver>([&](PostOver&& over) { asks_.heard(over); }),
              when<PostFailure>([&](PostFailure&& failure) { failed(failure); }));
}

void TensorSession::failed(const PostFailure& said) {
  const RosterFailure& failure = said.failure;
  const std::lock_guard lock(mutex_);
  failures_.insert_or_assign({failure.mesh.value(), failure.first.value()}, failure);
  if (owner_) tell_owner(failure);
  std::erase_if(listeners_, [](const Listener& one) { return one.words.expired(); });
  for (const Listener& listener : listeners_) {
    if (listener.mesh != failure.mesh.value()) continue;
    const auto words = listener.words.lock();
    if (words == nullptr) continue;
    (void)words->put(tensor::finder_word::Over{
        failure.first.value() / listener.gang, failure.generation,
        text(listener.name, ": generation ", failure.generation, " has ended: ", failure.cause)});
  }
}

// By the name of its mesh, which only a welcome has: there is one, once there is an owner.
void TensorSession::tell_owner(const RosterFailure& failure) {
  const std::size_t mesh = failure.mesh.value();
  if (mesh >= mesh_names_.size()) return;  // a mesh of a later roster has no rank in a group yet
  owner_->give(tensor::owner_order::Failed{
      {mesh_names_[mesh], failure.first.value(), failure.count, failure.generation, failure.cause}});
}

Result<PostWelcome> TensorSession::welcome() {
  const DoorThread::Connection connection = door_->wait(boot_now() + kPostPatience);
  if (connection == nullptr) {
    return Error{ErrorCode::kTimeout,
                 text("no connection to the post of host ", place_.host, " within ", to_text(kPostPatience))};
  }
  return connection->welcome();
}

// ---- What it gives out.

Status TensorSession::begin_to_serve(const PostWelcome& welcome, std::uint32_t gang) {
  const std::lock_guard lock(mutex_);
  if (owner_) return {};
  tensor::OwnerPlace place{.rank = {place_.mesh, place_.rank, place_.generation}};
  place.verbs = verbs_;
  place.sockets = place_.sockets;
  if (ways_.tcp || verbs_.device != nullptr) {
    place.address = welcome.address;
    place.first_port = welcome.first_port;
    place.last_port = welcome.last_port;
  }
  MONARCH_ASSIGN(owner_, tensor::OwnerThread::start(std::move(place)));
  for (const RosterMesh& mesh : welcome.meshes) mesh_names_.push_back(mesh.name);
  for (const auto& [ranks, failure] : failures_) tell_owner(failure);
  card_ = card_message(*owner_);
  const std::uint32_t registrar = place_.rank / gang * gang;
  if (registrar == place_.rank) return {};
  // Of this generation, or it is not this process's business any more.
  (void)asks_.ask(place_.mesh, registrar, place_.generation - 1, [this](Result<CardAsks::Answer> answer) {
    if (!answer.ok() || answer->generation != place_.generation) return;
    const auto card = tensor::parse_card(answer->text);
    if (!card.ok() || answer->personal.size() != tensor::kSecretBytes) return;
    owner_->give(tensor::owner_order::Found{with_secret(*card, answer->personal)});
  });
  return {};
}

Result<std::uint32_t> TensorSession::serve(const PostWelcome& post) {
  const RosterMesh* const mesh = find_mesh(post, place_.mesh);
  if (mesh == nullptr) return no_mesh(post, place_.mesh);
  const std::uint32_t gang = std::max(mesh->gang, 1U);
  MONARCH_TRY(begin_to_serve(post, gang));
  // Another thread's door may have come since: it is told once more, which changes nothing.
  if (const auto connection = door_->wait(boot_now())) MONARCH_TRY(connection->send(*card_));
  return gang;
}

Result<std::unique_ptr<Group>> TensorSession::meet(const std::string& name, const std::vector<GroupWish>& wishes,
                                                   const Group::Options& options) {
  MONARCH_TRY(check_process());
  MONARCH_ASSIGN(const PostWelcome post, welcome());
  MONARCH_ASSIGN(const tensor::GroupMembers members, read_members(name, wishes, post));
  MONARCH_TRY(serve(post));
  return Group::meet({asks_, *owner_, post, place_}, name, members, options);
}

Result<std::unique_ptr<tensor::Publisher>> TensorSession::publish(const std::string& name,
                                                                  const PublishOptions& options) {
  MONARCH_TRY(check_process());
  MONARCH_ASSIGN(const PostWelcome post, welcome());
  const RosterMesh* const mesh = find_mesh(post, place_.mesh);
  if (mesh == nullptr) return no_mesh(post, place_.mesh);
  const std::uint32_t gang = std::max(mesh->gang, 1U);
  const bool without_registrar =
      !options.publishers.empty() &&
      std::find(options.publishers.begin(), options.publishers.end(), 0U) == options.publishers.end();
  if (without_registrar) {
    return Error{ErrorCode::kInvalid, text("the publishers of ", printable(name),
                                           " lack 0: the first rank of a gang knows "
                                           "what is whole")};
  }
  MONARCH_TRY(serve(post));
  tensor::PublicationOptions made{.name = name,
                                  .publishers = {},
                                  .registrar = place_.rank / gang * gang,
                                  .owner = options.owner,
                                  .linger = options.linger};
  for (const std::uint32_t index : options.publishers) {
    if (index >= gang) {
      return Error{ErrorCode::kInvalid, text("publisher ", index, " of ", printable(name), ": a gang of ", place_.mesh,
                                             " has ", gang, " ranks")};
    }
    made.publishers.insert(made.registrar + index);
  }
  for (std::uint32_t index = 0; options.publishers.empty() && index < gang; ++index) {
    made.publishers.insert(made.registrar + index);
  }
  return tensor::Publisher::open(*owner_, std::move(made), cuda_);
}

Result<std::unique_ptr<tensor::Pull>> TensorSession::pull(const std::string& mesh, const std::string& publication,
                                                          std::vector<tensor::PullPart> parts) {
  MONARCH_TRY(check_process());
  MONARCH_ASSIGN(auto devices, devices_of(parts, text(printable(publication), " of ", printable(mesh))));
  MONARCH_ASSIGN(PullMaterial made, material(mesh, publication));
  return std::make_unique<tensor::Pull>(std::move(made.place), std::move(parts), std::move(made.finder), made.words,
                                        std::move(devices));
}

Result<int> TensorSession::gpu_of(const char* memory) const {
  MONARCH_TRY(check_process());  // a child has no driver, either
  MONARCH_ASSIGN(const tensor::SharedCuda cuda, cuda_.find());
  return cuda->device_of(memory);
}

Result<std::unique_ptr<tensor::DeviceDestination>> TensorSession::devices_of(const std::vector<tensor::PullPart>& parts,
                                                                             const std::string& name) const {
  tensor::SharedCuda cuda;
  for (const tensor::PullPart& part : parts) {
    if (part.device == tensor::kHostMemory || tensor::is_empty(part.box)) continue;
    if (cuda == nullptr) {
      auto found = cuda_.find();
      if (!found.ok()) return named(part, found.error());
      cuda = std::move(*found);
    }
    const auto device = cuda->device_of(part.data);
    if (!device.ok()) return named(part, device.error());
    if (*device == part.device) continue;
    return named(part, {ErrorCode::kInvalid, text("its memory is on ", cuda->device_name(*device), ", and ",
                                                  part.device, " is given as its GPU")});
  }
  if (cuda == nullptr) return std::unique_ptr<tensor::DeviceDestination>();
  return std::make_unique<tensor::DeviceDestination>(std::move(cuda), cuda_, name, tensor::spans_of(parts));
}

Result<std::unique_ptr<tensor::Pull>> TensorSession::map(const std::string& mesh, const std::string& publication,
                                                         const std::string& tensor) {
  MONARCH_ASSIGN(PullMaterial made, material(mesh, publication));
  return std::make_unique<tensor::Pull>(std::move(made.place), tensor, std::move(made.finder), made.words);
}

Result<TensorSession::PullMaterial> TensorSession::material(const std::string& mesh, const std::string& publication) {
  MONARCH_TRY(check_process());
  MONARCH_ASSIGN(const PostWelcome post, welcome());
  const RosterMesh* const found = find_mesh(post, mesh);
  if (found == nullptr) return no_mesh(post, mesh);
  const std::uint32_t gang = std::max(found->gang, 1U);
  MONARCH_ASSIGN(auto inbox, Inbox<tensor::FinderWord>::create(tensor::kFinderWords));
  const tensor::FinderWords words = std::move(inbox);
  {
    const std::lock_guard lock(mutex_);
    listeners_.push_back({static_cast<std::uint32_t>(found - post.meshes.data()), gang, mesh, words});
  }
  auto finder = std::make_unique<PostFinder>(asks_, FoundMesh{mesh, size_of(*found) / gang, gang}, words);
  return PullMaterial{
      {{place_.mesh, place_.rank, place_.generation}, mesh, publication, ways_, verbs_}, std::move(finder), words};
}

}  // namespace monarch
