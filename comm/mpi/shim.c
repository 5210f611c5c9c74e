//go:build cgo && linux

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TX_FIND(name, args)                            \
  if (!(*(void**)&m->name = dlsym(lib, "MPI_" #name))) { \
    snprintf(why, n, "it has no MPI_" #name);          \
    free(m);                                           \
    return NULL;                                       \
  }

// Open MPI: handles are the addresses of variables that it exports.
static int open_mpi(tx_mpi* m, void* lib) {
  struct {
    const char* name;
    tx_handle* to;
  } all[] = {
      {"ompi_mpi_comm_world", &m->world},       {"ompi_mpi_errors_return", &m->errors_return}, {"ompi_request_null", &m->request_null},
      {"ompi_mpi_byte", &m->type[tx_byte]},     {"ompi_mpi_short", &m->type[tx_short]},        {"ompi_mpi_int", &m->type[tx_int]},
      {"ompi_mpi_float", &m->type[tx_float]},   {"ompi_mpi_double", &m->type[tx_double]},      {"ompi_mpi_op_sum", &m->op[tx_sum]},
  };
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
    if (!(*all[i].to = (tx_handle)dlsym(lib, all[i].name))) return 0;
  m->family = tx_open_mpi;
  m->in_place = (void*)1;
  m->any_source = -1;
  return 1;
}

// The MPICH family (MPICH, Intel MPI, MVAPICH, Cray): integers, the same in all of them (mpich.org/abi).
static void mpich(tx_mpi* m) {
  m->family = tx_mpich;
  m->world = 0x44000000, m->errors_return = 0x54000001, m->request_null = 0x2c000000;
  m->type[tx_byte] = 0x4c00010d, m->type[tx_short] = 0x4c000203, m->type[tx_int] = 0x4c000405;
  m->type[tx_float] = 0x4c00040a, m->type[tx_double] = 0x4c00080b, m->op[tx_sum] = 0x58000003;
  m->in_place = (void*)-1, m->status_ignore = (void*)1, m->any_source = -2;
}

// The ABI of MPI 5.0, chapter 20.
static void standard(tx_mpi* m) {
  m->family = tx_standard;
  m->world = 0x101, m->errors_return = 0x142, m->request_null = 0x180;
  m->type[tx_byte] = 0x247, m->type[tx_short] = 0x208, m->type[tx_int] = 0x209, m->type[tx_float] = 0x210, m->type[tx_double] = 0x214;
  m->op[tx_sum] = 0x21;
  m->in_place = (void*)1, m->any_source = -1;
}

tx_mpi* tx_load(const char* path, char* why, int n) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);  // global: Open MPI's plug-ins look for its symbols
  if (!lib) {
    snprintf(why, n, "%s", dlerror());
    return NULL;
  }
  tx_mpi* m = calloc(1, sizeof *m);
  if (!m) return NULL;
  TX_CALLS(TX_FIND)
  int (*abi)(int*, int*) = (int (*)(int*, int*))dlsym(lib, "MPI_Abi_get_version");
  int major = -1, minor = -1;
  if (abi && abi(&major, &minor) == 0 && major >= 1) {
    standard(m);
  } else if (!open_mpi(m, lib)) {
    mpich(m);
  }
  return m;
}

// The library's own maximum may drop NaN; this one keeps it.
#define TX_MAX(T)                                                          \
  static void max_##T(void* in, void* inout, int* len, void* type) {       \
    (void)type;                                                            \
    T *a = in, *b = inout;                                                 \
    for (int i = 0; i < *len; i++)                                         \
      if (a[i] > b[i] || a[i] != a[i]) b[i] = a[i];                        \
  }
TX_MAX(float)
TX_MAX(double)

int tx_init(tx_mpi* m, int* rank, int* size) {
  // Handlers that a library installs without an alternate stack end a Go program; Go's own are put back.
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  enum { count = sizeof faults / sizeof *faults };
  struct sigaction before[count];
  for (int i = 0; i < count; i++) sigaction(faults[i], NULL, &before[i]);
  int granted, err = m->Init_thread(NULL, NULL, 1, &granted);  // MPI_THREAD_FUNNELED: all calls come from the thread that is here
  for (int i = 0; i < count; i++) sigaction(faults[i], &before[i], NULL);
  if (!err) err = m->Comm_set_errhandler(m->world, m->errors_return);
  if (!err) err = m->Comm_rank(m->world, rank);
  if (!err) err = m->Comm_size(m->world, size);
  if (!err) err = m->Op_create(max_float, 1, &m->op[tx_max_float]);
  if (!err) err = m->Op_create(max_double, 1, &m->op[tx_max_double]);
  return err;
}

int tx_split(tx_mpi* m, tx_handle from, const int* ranks, int n, int tag, tx_handle* to) {
  tx_handle all = 0, some = 0;
  int err = m->Comm_group(from, &all);
  if (!err) err = m->Group_incl(all, n, ranks, &some);
  *to = 0;
  if (!err) err = m->Comm_create_group(from, some, tag, to);
  if (!err) err = m->Comm_set_errhandler(*to, m->errors_return);
  if (some) m->Group_free(&some);
  if (all) m->Group_free(&all);
  return err;
}

int tx_isend(tx_mpi* m, const void* p, int n, int type, int to, int tag, tx_handle comm, tx_handle* r) {
  return m->Isend(p, n, m->type[type], to, tag, comm, r);
}
int tx_irecv(tx_mpi* m, void* p, int n, int type, int from, int tag, tx_handle comm, tx_handle* r) {
  return m->Irecv(p, n, m->type[type], from < 0 ? m->any_source : from, tag, comm, r);
}
int tx_iallreduce(tx_mpi* m, void* p, int n, int type, int op, tx_handle comm, tx_handle* r) {
  return m->Iallreduce(m->in_place, p, n, m->type[type], m->op[op], comm, r);
}
// src NULL: the root's own numbers are in dst.
int tx_ireduce(tx_mpi* m, const void* src, void* dst, int n, int type, int op, int root, tx_handle comm, tx_handle* r) {
  return m->Ireduce(src ? src : m->in_place, dst, n, m->type[type], m->op[op], root, comm, r);
}
int tx_ireduce_scatter(tx_mpi* m, const void* src, void* dst, int n, int type, int op, tx_handle comm, tx_handle* r) {
  return m->Ireduce_scatter_block(src, dst, n, m->type[type], m->op[op], comm, r);
}
// src NULL: this member's part is in its place already.
int tx_iallgather(tx_mpi* m, const void* src, void* dst, int n, int type, tx_handle comm, tx_handle* r) {
  return m->Iallgather(src ? src : m->in_place, n, m->type[type], dst, n, m->type[type], comm, r);
}
int tx_ialltoall(tx_mpi* m, const void* src, void* dst, int n, int type, tx_handle comm, tx_handle* r) {
  return m->Ialltoall(src, n, m->type[type], dst, n, m->type[type], comm, r);
}
int tx_ibcast(tx_mpi* m, void* p, int n, int type, int root, tx_handle comm, tx_handle* r) {
  return m->Ibcast(p, n, m->type[type], root, comm, r);
}
void tx_cancel(tx_mpi* m, tx_handle* r) { m->Cancel(r); }
int tx_finalize(tx_mpi* m) { return m->Finalize(); }

void tx_error(tx_mpi* m, int code, char* text, int n) {
  char long_text[8192] = "";
  int len = 0;
  if (m->Error_string(code, long_text, &len)) snprintf(long_text, sizeof long_text, "error %d", code);
  snprintf(text, n, "%s", long_text);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int tx_poll(tx_mpi* m, tx_handle* r, int n, int* ended, int* codes, const int* wake, int64_t nanoseconds) {
  int64_t end = 0;
  for (int round = 0;; round++) {
    int k = 0;
    for (int i = 0; i < n; i++) {
      int flag = 0, code = m->Test(&r[i], &flag, m->status_ignore);
      if (flag || code) ended[k] = i, codes[k++] = code;
    }
    if (k || __atomic_load_n(wake, __ATOMIC_ACQUIRE)) return k;
    int64_t t = now();
    if (round == 0) end = t + nanoseconds;
    if (t >= end) return 0;
    sched_yield();
  }
}

void tx_sleep(int64_t nanoseconds) {
  struct timespec t = {0, nanoseconds};
  nanosleep(&t, NULL);
}

void tx_version(tx_mpi* m, char* text) {
  int n = 0;
  if (m->Get_library_version(text, &n)) *text = 0;
}
