#include "worker/library/tensor_words.h"

#include <unistd.h>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

void say_line(const std::string& words) {
  const std::string line = words + '\n';
  (void)!::write(STDERR_FILENO, line.data(), line.size());  // a closed end wants none
}

std::string describe_index(const tensor::Index& index) {
  Json tensors = Json::array();
  for (const tensor::TensorKind& tensor : index.tensors) {
    Json shape = Json::array();
    for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) shape.append(tensor.shape[dim]);
    tensors.append(
        Json::object({{"name", tensor.name}, {"dtype", to_text(tensor.dtype)}, {"shape", std::move(shape)}}));
  }
  return to_json(Json::object({{"tensors", std::move(tensors)}}));
}

}  // namespace monarch
