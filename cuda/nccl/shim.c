//go:build cgo && linux

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define TX_FIND(name, args)                                       \
  if (!(*(void**)&l->name = dlsym(lib, "nccl" #name))) {          \
    snprintf(why, n, "%s has no nccl" #name ", which needs 2.18", path); \
    free(l);                                                      \
    return NULL;                                                  \
  }

tx_nccl* tx_open_nccl(const char* path, char* why, int n) {
  void* lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    snprintf(why, n, "%s", dlerror());
    return NULL;
  }
  tx_nccl* l = calloc(1, sizeof *l);
  if (!l) return NULL;
  TX_NCCL(TX_FIND)
  TX_FIND(GetErrorString, )
  TX_FIND(GetLastError, )
  return l;
}

static int op(tx_nccl* l, const tx_op* o) {
  void *comm = (void*)(uintptr_t)o->comm, *stream = (void*)(uintptr_t)o->stream;
  void *send = (void*)(uintptr_t)o->send, *recv = (void*)(uintptr_t)o->recv;
  switch (o->kind) {
    case tx_all_reduce: return l->AllReduce(send, recv, o->count, o->type, o->reduction, comm, stream);
    case tx_reduce_scatter: return l->ReduceScatter(send, recv, o->count, o->type, o->reduction, comm, stream);
    case tx_all_gather: return l->AllGather(send, recv, o->count, o->type, comm, stream);
    case tx_broadcast: return l->Broadcast(send, recv, o->count, o->type, o->peer, comm, stream);
    case tx_send: return l->Send(send, o->count, o->type, o->peer, comm, stream);
    case tx_recv: return l->Recv(recv, o->count, o->type, o->peer, comm, stream);
  }
  return 4;  // invalid argument
}

enum { in_progress = 7 };

int tx_nccl_issue(tx_nccl* l, const tx_op* ops, int n, int* at) {
  *at = n;
  int r = l->GroupStart();
  if (r) return r;
  for (int i = 0; i < n && !r; i++) {
    r = op(l, &ops[i]);
    if (r == in_progress) r = 0;
    if (r) *at = i;
  }
  int end = l->GroupEnd();  // also after a failure: the group must not stay open in this thread
  if (end == in_progress) end = 0;
  return r ? r : end;
}

static tx_config config(int max_ctas) {
  tx_config c = {sizeof c, 0xcafebeef, 21800, 0, INT_MIN, INT_MIN, max_ctas > 0 ? max_ctas : INT_MIN, NULL, 0};
  return c;
}

int tx_nccl_init(tx_nccl* l, void** comm, int ranks, const tx_id* id, int rank, int max_ctas) {
  tx_config c = config(max_ctas);
  int r = l->CommInitRankConfig(comm, ranks, *id, rank, &c);
  return r == in_progress ? 0 : r;
}

int tx_nccl_split(tx_nccl* l, void* from, int color, int key, void** to, int max_ctas) {
  tx_config c = config(max_ctas);
  int r = l->CommSplit(from, color, key, to, &c);
  return r == in_progress ? 0 : r;
}
