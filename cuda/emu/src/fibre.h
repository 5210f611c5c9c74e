// Fibres: stacks that take turns on one thread.
#pragma once
#include <stddef.h>
#include <sys/mman.h>

static const size_t stack_bytes = 128 << 10;

static inline char* new_stack() {
  return (char*)mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

#if defined(__x86_64__)

// emu_switch keeps what the calling convention says a function must keep, on the stack left behind.
extern "C" void emu_switch(void** save, void* load);
asm(R"(
.text
.globl emu_switch
.hidden emu_switch
.type emu_switch,@function
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emu_switch,.-emu_switch
)");

struct fibre {
  void* sp;
  char* stack;
};

static inline void fibre_start(fibre* f, void (*entry)()) {
  void** top = (void**)(f->stack + stack_bytes);
  *--top = nullptr;         // entry never returns; keeps the stack aligned as after a call
  *--top = (void*)entry;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f->sp = top;
}

static inline void fibre_enter(fibre* host, fibre* f) { emu_switch(&host->sp, f->sp); }
static inline void fibre_leave(fibre* host, fibre* f) { emu_switch(&f->sp, host->sp); }

#else
#include <ucontext.h>

struct fibre {
  ucontext_t at;
  char* stack;
};

static inline void fibre_start(fibre* f, void (*entry)()) {
  getcontext(&f->at);
  f->at.uc_stack.ss_sp = f->stack;
  f->at.uc_stack.ss_size = stack_bytes;
  f->at.uc_link = nullptr;
  makecontext(&f->at, entry, 0);
}

static inline void fibre_enter(fibre* host, fibre* f) { swapcontext(&host->at, &f->at); }
static inline void fibre_leave(fibre* host, fibre* f) { swapcontext(&f->at, &host->at); }
#endif
