#pragma once

// The first words on a link: both sides prove to each other that they know one secret, and that they mean the same two
// ranks and generations. Readers have the secret of the owner's card: nobody who has no card reads a byte, and nobody
// takes another process for the owner whose card he has. Who publishes, or meets with others, has a secret of his own,
// which posts give to that start of that rank alone: no reader, and no other rank, says anything in its name.
//
//   reader → owner   HelloAsk     who he is, whom he means, a nonce
//   owner → reader   HelloAnswer  a nonce, and the proof that it is him
//   reader → owner   HelloProof   the proof that he has the card
//
// What follows is neither encrypted nor authenticated, as with RDMA.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <string_view>

#include <monarch/codec.hpp>

#include "transport/base/result.h"

namespace monarch::tensor {

inline constexpr std::uint32_t kLinkVersion = 3;
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kHelloBytes = 1'024;  // of each word, at most
inline constexpr std::size_t kRankNameBytes = 128;
inline constexpr std::size_t kPublicationNameBytes = 128;

struct LinkRank {
  std::string mesh;  // empty: it is no rank of the job
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  bool operator==(const LinkRank&) const = default;
  std::string name() const;  // "trainer/3"
};
MONARCH_FIELDS(LinkRank, mesh, rank, generation)

enum class LinkPurpose : std::uint8_t {
  kReads,
  kPublishes,  // a rank of the same gang, to its registrar
  kMeets,      // a member of a group, to the first of it; `publication` is the name of the group
};
constexpr LinkPurpose monarch_enum_max(LinkPurpose) { return LinkPurpose::kMeets; }

struct HelloAsk {
  std::uint32_t version = kLinkVersion;
  LinkRank reader;
  LinkRank owner;
  LinkPurpose purpose = LinkPurpose::kReads;
  std::string publication;
  codec::Bytes nonce;
};
MONARCH_FIELDS(HelloAsk, version, reader, owner, purpose, publication, nonce)

struct HelloAnswer {
  codec::Bytes nonce;
  codec::Bytes proof;
};
MONARCH_FIELDS(HelloAnswer, nonce, proof)

struct HelloProof {
  codec::Bytes proof;
};
MONARCH_FIELDS(HelloProof, proof)

// What an owner keeps to itself.
struct OwnerSecrets {
  std::string readers;  // on its card
  std::string key;      // of the personal secrets of those that publish or meet (transport/base/sha256.h)
};
// By which that one has to prove that he is whom he says.
std::string secret_of(const OwnerSecrets& secrets, const HelloAsk& ask);

// What the owner says; kInvalid: the reader speaks another version, or its word is none; kGone: it means somebody else.
// `nonce`: of kNonceBytes, fresh.
Result<HelloAnswer> answer_hello(const HelloAsk& ask, const LinkRank& owner, std::string_view secret,
                                 std::string nonce);
// What the reader says then; kInvalid: it is not the owner who has answered.
Result<HelloProof> prove_hello(const HelloAsk& ask, const HelloAnswer& answer, std::string_view secret);
// Whether the reader has the card.
bool is_proven(const HelloAsk& ask, const HelloAnswer& answer, const HelloProof& proof, std::string_view secret);

}  // namespace monarch::tensor
