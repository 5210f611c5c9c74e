// Blocks of threads as fibres: who runs next, barriers, warps, shared memory.
#pragma once
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fibre.h"
#include "runtime.h"

// The orders in which threads that can go on do so, and blocks. A kernel without races gives the same bits under all of them.
enum order { ascending, descending, shuffled, last_first, orders };

static const char* const order_names[] = {"ascending", "descending", "shuffled", "last in, first out"};

enum state { ready, at_block, at_warp, left };

struct worker {
  fibre f;
  emu_thread id;
  state st;
  bool begun;
  unsigned turn;  // of shuffles: which of two buffers
};

// block is the one block under way on this thread.
struct block {
  std::vector<worker> workers;  // the first n are at work
  std::vector<char*> stacks;    // of nobody: a thread takes one when it begins and leaves it when it ends, so that those that never wait use one
  int n;
  std::vector<int> queue, released;
  fibre host;
  const emu_thread* self;
  int now, alive, waiting;
  std::vector<int> in_warp;         // lanes waiting, by warp
  std::vector<int> gone;            // lanes that have left, by warp
  std::vector<char> shown;          // two buffers of emu_slot bytes a thread
  std::vector<char> room[256];      // of shared declarations
  bool declared[256];
  std::vector<char> dynamic;
  size_t dynamic_bytes;
  const emu_entry* entry;
  const char* args;
  order how;
  std::mt19937_64 dice{1};
  std::string fault;
  ~block() {
    for (char* s : stacks) munmap(s, stack_bytes);
  }
};

// The thread's own block. A bare pointer is quick to find; the owner takes it away with the thread.
static thread_local block* own;
static thread_local std::unique_ptr<block> owner;

static const size_t guard = 64;

static void release(int from, int to, state was) {
  block& b = *own;
  std::vector<int>& list = b.released;
  list.clear();
  for (int i = from; i < to; i++)
    if (b.workers[i].st == was) {
      b.workers[i].st = ready;
      list.push_back(i);
    }
  if (b.how == descending) std::reverse(list.begin(), list.end());
  if (b.how == shuffled) std::shuffle(list.begin(), list.end(), b.dice);
  b.queue.insert(b.queue.end(), list.begin(), list.end());
}

static int size_of_warp(int w) { return std::min(32, own->n - 32 * w); }

static void pause(state st) {
  block& b = *own;
  worker& w = b.workers[b.now];
  w.st = st;
  if (st == at_block) {
    if (++b.waiting == b.alive) {
      b.waiting = 0;
      release(0, b.n, at_block);
    }
  } else {
    int warp = b.now / 32;
    if (++b.in_warp[warp] == size_of_warp(warp)) {  // all lanes must come: those that left never do
      b.in_warp[warp] = 0;
      release(32 * warp, 32 * warp + size_of_warp(warp), at_warp);
    }
  }
  fibre_leave(&b.host, &w.f);
}

static void body() {
  block& b = *own;
  b.entry->call(b.args);
  worker& w = b.workers[b.now];
  w.st = left;
  b.gone[b.now / 32]++;
  b.alive--;
  if (b.alive > 0 && b.waiting == b.alive) {  // barriers do not wait for those that left
    b.waiting = 0;
    release(0, b.n, at_block);
  }
  fibre_leave(&b.host, &w.f);
  __builtin_trap();
}

static const emu_thread* run_self() { return own->self; }

static void* run_shared(int site, size_t bytes) {
  block& b = *own;
  if (!b.declared[site]) {
    b.declared[site] = true;
    b.room[site].assign(bytes, (char)0xff);
  }
  return b.room[site].data();
}

static void* run_dynamic() { return own->dynamic.data(); }
static void run_block_barrier() { pause(at_block); }
static void run_warp_barrier() { pause(at_warp); }

static void run_shuffle(const void* value, void* out, size_t bytes, int mask) {
  block& b = *own;
  worker& w = b.workers[b.now];
  size_t half = (w.turn++ & 1) * emu_slot * b.n;
  memcpy(&b.shown[half + emu_slot * b.now], value, bytes);
  int from = b.now ^ mask;
  pause(at_warp);
  memcpy(out, &b.shown[half + emu_slot * from], bytes);
}

static const char* run_gather(const void* value, size_t bytes) {
  block& b = *own;
  worker& w = b.workers[b.now];
  char* half = &b.shown[(w.turn++ & 1) * emu_slot * b.n];
  memcpy(half + emu_slot * b.now, value, bytes);
  int first = b.now / 32 * 32;
  pause(at_warp);
  return half + emu_slot * first;
}

static const emu_runtime run_time = {run_self, run_shared, run_dynamic, run_block_barrier, run_warp_barrier, run_shuffle, run_gather};

static void stuck(const char* name, emu_dim at) {
  block& b = *own;
  int n[4] = {};
  for (int i = 0; i < b.n; i++) n[b.workers[i].st]++;
  char text[300];
  snprintf(text, sizeof text, "kernel %s, block (%u %u %u): nobody can go on: %d threads wait in __syncthreads, %d for lanes of their warp, %d have left",
           name, at.x, at.y, at.z, n[at_block], n[at_warp], n[left]);
  b.fault = text;
}

// enter lets a thread go on until it waits or ends.
static void enter(worker& w) {
  block& b = *own;
  if (!w.begun) {
    w.begun = true;
    if (b.stacks.empty()) b.stacks.push_back(new_stack());
    w.f.stack = b.stacks.back();
    b.stacks.pop_back();
    fibre_start(&w.f, body);
  }
  b.self = &w.id;
  fibre_enter(&b.host, &w.f);
  if (w.st == left) b.stacks.push_back(w.f.stack);
}

// run_one runs one block to its end; false leaves the fault.
static bool run_one(const char* name, emu_dim at, emu_dim size, emu_dim grid) {
  block& b = *own;
  int n = b.n;
  b.alive = n;
  b.waiting = 0;
  b.in_warp.assign((n + 31) / 32, 0);
  b.gone.assign((n + 31) / 32, 0);
  memset(b.declared, 0, sizeof b.declared);
  b.dynamic.assign(b.dynamic_bytes + guard, (char)0xff);
  b.queue.clear();
  for (int i = 0; i < n; i++) {
    worker& w = b.workers[i];
    w.id = {{i % size.x, i / size.x % size.y, i / size.x / size.y}, at, size, grid};
    w.st = at_block;
    w.turn = 0;
    w.begun = false;
  }
  release(0, n, at_block);
  for (size_t head = 0; head < b.queue.size();) {
    if (b.how == last_first) {
      b.now = b.queue.back();
      b.queue.pop_back();
    } else {
      b.now = b.queue[head++];
    }
    if (head > 4096 && head == b.queue.size()) {
      b.queue.clear();
      head = 0;
    }
    enter(b.workers[b.now]);
  }
  if (b.alive > 0) {
    for (int i = 0; i < n; i++)
      if (b.workers[i].begun && b.workers[i].st != left) b.stacks.push_back(b.workers[i].f.stack);
    stuck(name, at);
    return false;
  }
  for (size_t i = 0; i < guard; i++)
    if (b.dynamic[b.dynamic_bytes + i] != (char)0xff) {
      b.fault = std::string("kernel ") + name + " writes beyond its dynamic shared memory";
      return false;
    }
  return true;
}

static bool run_grid(const char* name, const emu_entry* entry, const char* args, emu_dim grid, emu_dim size, size_t dynamic, order how) {
  if (!own) {
    owner = std::make_unique<block>();
    own = owner.get();
  }
  block& b = *own;
  size_t n = (size_t)size.x * size.y * size.z, blocks = (size_t)grid.x * grid.y * grid.z;
  b.entry = entry;
  b.args = args;
  b.how = how;
  b.dynamic_bytes = dynamic;
  b.fault.clear();
  b.n = (int)n;
  if (b.workers.size() < n) b.workers.resize(n);
  b.shown.resize(2 * emu_slot * n);
  std::vector<size_t> list(blocks);
  for (size_t i = 0; i < blocks; i++) list[i] = how == descending || how == last_first ? blocks - 1 - i : i;
  if (how == shuffled) std::shuffle(list.begin(), list.end(), b.dice);
  for (size_t i : list) {
    emu_dim at = {(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y), (unsigned)(i / grid.x / grid.y)};
    if (!run_one(name, at, size, grid)) return false;
  }
  return true;
}
