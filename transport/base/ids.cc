#include "transport/base/ids.h"

#include "transport/base/text.h"

namespace monarch {

std::string JobUuid::to_text() const {
  return to_hex(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace monarch
