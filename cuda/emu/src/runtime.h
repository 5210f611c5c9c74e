// What a compiled kernel module and the emulated driver know of each other.
#pragma once
#include <stddef.h>

struct emu_dim {
  unsigned x, y, z;
};

struct emu_thread {
  emu_dim thread, block, block_dim, grid_dim;
};

static const size_t emu_slot = 32;

struct emu_runtime {
  const emu_thread* (*self)();
  void* (*shared)(int site, size_t bytes);  // the block's array of a declaration, filled with NaN when the block starts
  void* (*dynamic)();
  void (*block_barrier)();
  void (*warp_barrier)();
  void (*shuffle)(const void* value, void* out, size_t bytes, int mask);
  const char* (*gather)(const void* value, size_t bytes);  // the values of all 32 lanes, up to emu_slot bytes each and that far apart, until the exchange after next
};

struct emu_entry {
  size_t size;  // of the packed arguments
  void (*call)(const char* args);
};
