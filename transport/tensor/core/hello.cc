#include "transport/tensor/core/hello.h"

#include <utility>

#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

// Of both roles another, so that no proof is said back as one's own; every part with its length before it.
std::string proof_of(std::string_view role, const HelloAsk& ask, std::string_view owner_nonce,
                     std::string_view secret) {
  codec::Writer writer;
  writer.string(role);
  codec::write(writer, ask);
  writer.string(owner_nonce);
  return hmac_sha256(secret, writer.take());
}

std::string owners_proof(const HelloAsk& ask, std::string_view nonce, std::string_view secret) {
  return proof_of("owner", ask, nonce, secret);
}

std::string readers_proof(const HelloAsk& ask, std::string_view nonce, std::string_view secret) {
  return proof_of("reader", ask, nonce, secret);
}

}  // namespace

std::string LinkRank::name() const { return mesh.empty() ? "who is no rank of the job" : text(mesh, '/', rank); }

std::string secret_of(const OwnerSecrets& secrets, const HelloAsk& ask) {
  if (ask.purpose == LinkPurpose::kReads) return secrets.readers;
  return personal_secret(secrets.key, ask.reader.mesh, ask.reader.rank, ask.reader.generation);
}

Result<HelloAnswer> answer_hello(const HelloAsk& ask, const LinkRank& owner, std::string_view secret,
                                 std::string nonce) {
  if (ask.version != kLinkVersion) {
    return Error{ErrorCode::kInvalid, text("it speaks version ", ask.version, " of the link, and ", owner.name(),
                                           " version ", kLinkVersion, ": both have to load one library")};
  }
  if (ask.nonce.data.size() != kNonceBytes || ask.reader.mesh.size() > kRankNameBytes || ask.publication.empty() ||
      ask.publication.size() > kPublicationNameBytes) {
    return Error{ErrorCode::kInvalid, "a hello that is none"};
  }
  if (ask.owner != owner) {
    return Error{ErrorCode::kGone,
                 text("it means generation ", ask.owner.generation, " of ", printable(ask.owner.name()),
                      ", and this is generation ", owner.generation, " of ", owner.name())};
  }
  HelloAnswer answer{{std::move(nonce)}, {}};
  answer.proof.data = owners_proof(ask, answer.nonce.data, secret);
  return answer;
}

Result<HelloProof> prove_hello(const HelloAsk& ask, const HelloAnswer& answer, std::string_view secret) {
  const bool fresh = answer.nonce.data.size() == kNonceBytes && answer.nonce.data != ask.nonce.data;
  if (!fresh || !same_secret(answer.proof.data, owners_proof(ask, answer.nonce.data, secret))) {
    return Error{ErrorCode::kInvalid, text("who answers is not ", ask.owner.name())};
  }
  return HelloProof{{readers_proof(ask, answer.nonce.data, secret)}};
}

bool is_proven(const HelloAsk& ask, const HelloAnswer& answer, const HelloProof& proof, std::string_view secret) {
  return same_secret(proof.proof.data, readers_proof(ask, answer.nonce.data, secret));
}

}  // namespace monarch::tensor
