#include "transport/tensor/lane.h"

#include <algorithm>

namespace monarch::tensor {

namespace {

// Rows of one length, at one distance.
void append_run(Piece run, std::uint64_t rows, std::vector<Piece>& pieces) {
  if (run.row > kPieceBytes) {
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::uint64_t at = 0; at < run.row; at += kPieceBytes) {
        Piece piece = run;
        piece.source += row * run.source_pitch + at;
        piece.destination += row * run.destination_pitch + at;
        piece.row = std::min(kPieceBytes, run.row - at);
        piece.rows = 1;
        pieces.push_back(piece);
      }
    }
    return;
  }
  const std::uint64_t together = std::max<std::uint64_t>(kPieceBytes / run.row, 1);
  for (std::uint64_t row = 0; row < rows; row += together) {
    Piece piece = run;
    piece.source += row * run.source_pitch;
    piece.destination += row * run.destination_pitch;
    piece.rows = static_cast<std::uint32_t>(std::min(together, rows - row));
    pieces.push_back(piece);
  }
}

}  // namespace

void append_pieces(const Copy& copy, char* to, int device, std::vector<Piece>& pieces) {
  for_each_run(copy, [&](std::uint64_t source, std::uint64_t destination, const Copy::Loop& loop) {
    append_run({.source = source,
                .destination = to + destination,
                .row = copy.row,
                .rows = 1,
                .source_pitch = loop.source,
                .destination_pitch = loop.destination,
                .device = device},
               loop.count, pieces);
  });
}

}  // namespace monarch::tensor
