#include "worker/rank/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
#error "which machine is this?"
#endif

constexpr const char* kCutOff = "it is a shared object that was cut off";

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86_64";
    case EM_AARCH64: return "aarch64";
    case EM_386: return "i386";
    case EM_RISCV: return "riscv";
    case EM_PPC64: return "ppc64";
    default: return text("machine ", machine);
  }
}

// Nothing: the file ends before.
template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::vector<Elf64_Phdr> segments_of(std::string_view bytes, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> segments;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment) segments.push_back(*segment);
  }
  return segments;
}

// Where in the file an address of the loaded object is.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
      continue;
    return segment.p_offset + (address - segment.p_vaddr);
  }
  return std::nullopt;
}

// Where it looks for libraries: DT_RUNPATH, or DT_RPATH.
std::string search_path(std::string_view bytes, const std::vector<Elf64_Phdr>& segments) {
  std::optional<std::uint64_t> texts;
  std::optional<std::uint64_t> path;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = read_at<Elf64_Dyn>(bytes, segment.p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_STRTAB) texts = offset_of(segments, entry->d_un.d_ptr);
      if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) path = entry->d_un.d_val;
    }
  }
  if (!texts || !path || *texts > bytes.size() || *path > bytes.size() - *texts) return {};
  const std::string_view rest = bytes.substr(*texts + *path);
  return std::string(rest.substr(0, rest.find('\0')));
}

}  // namespace

Status check_elf(std::string_view bytes) {
  if (!bytes.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    return Error{ErrorCode::kInvalid, "it is no shared object"};
  }
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header) return Error{ErrorCode::kInvalid, kCutOff};
  const bool wide = header->e_ident[EI_CLASS] == ELFCLASS64;
  // Both classes have the machine in the same place.
  if (!wide || header->e_machine != kMachine) {
    return Error{ErrorCode::kUnsupported, text("it is for ", machine_name(header->e_machine), wide ? "" : " of 32 bits",
                                               ", and this host is ", machine_name(kMachine))};
  }
  if (header->e_type != ET_DYN)
    return Error{ErrorCode::kInvalid, "it is no shared object: build it with -shared -fPIC"};
  const std::vector<Elf64_Phdr> segments = segments_of(bytes, *header);
  // WARNING: the loader maps what the headers say, and touches what lies behind the end of the file (SIGBUS, mmap(2)).
  const bool whole = std::all_of(segments.begin(), segments.end(), [&](const Elf64_Phdr& segment) {
    return segment.p_offset <= bytes.size() && segment.p_filesz <= bytes.size() - segment.p_offset;
  });
  if (!whole || segments.size() != header->e_phnum) return Error{ErrorCode::kInvalid, kCutOff};
  const std::string path = search_path(bytes, segments);
  if (path.find("ORIGIN") == std::string::npos) return {};
  return Error{ErrorCode::kInvalid,
               text("it looks for libraries in ", printable(path),
                    ", and has no folder here: link with the folder itself, or set LD_LIBRARY_PATH "
                    "in the mesh's env")};
}

}  // namespace monarch
