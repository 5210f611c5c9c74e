// What is needed of NCCL, found at run time. Prototypes are this file's own, after the library's documentation.
#ifndef TRIAX_NCCL_SHIM_H
#define TRIAX_NCCL_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  char bytes[128];
} tx_id;

// ncclConfig_t as of 2.18: the library takes as much of it as size says, and fills in the rest by version.
typedef struct {
  size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char* net_name;
  int split_share;
} tx_config;

// name after "nccl", arguments; all return a status.
#define TX_NCCL(F)                                                               \
  F(GetVersion, (int*))                                                          \
  F(GetUniqueId, (tx_id*))                                                       \
  F(CommInitRankConfig, (void**, int, tx_id, int, tx_config*))                   \
  F(CommSplit, (void*, int, int, void**, tx_config*))                            \
  F(CommFinalize, (void*))                                                       \
  F(CommDestroy, (void*))                                                        \
  F(CommAbort, (void*))                                                          \
  F(CommGetAsyncError, (void*, int*))                                            \
  F(CommCount, (void*, int*))                                                    \
  F(CommUserRank, (void*, int*))                                                 \
  F(GroupStart, (void))                                                          \
  F(GroupEnd, (void))                                                            \
  F(AllReduce, (const void*, void*, size_t, int, int, void*, void*))             \
  F(ReduceScatter, (const void*, void*, size_t, int, int, void*, void*))         \
  F(AllGather, (const void*, void*, size_t, int, void*, void*))                  \
  F(Broadcast, (const void*, void*, size_t, int, int, void*, void*))             \
  F(Send, (const void*, size_t, int, int, void*, void*))                         \
  F(Recv, (void*, size_t, int, int, void*, void*))

#define TX_FIELD(name, args) int(*name) args;

typedef struct {
  TX_NCCL(TX_FIELD)
  const char* (*GetErrorString)(int);
  const char* (*GetLastError)(void*);
} tx_nccl;

enum { tx_all_reduce, tx_reduce_scatter, tx_all_gather, tx_broadcast, tx_send, tx_recv };

// tx_op is one operation; addresses are the device's, handles are the libraries'.
typedef struct {
  uint64_t comm, stream, send, recv, count;
  int32_t kind, type, reduction, peer;  // peer: the root, or the other rank of a message
} tx_op;

tx_nccl* tx_open_nccl(const char* path, char* why, int n);

// tx_nccl_issue runs one group. Of a failure, at is the number of the operation, or n where the group did not start or end. A status of 7 (in progress) is
// none.
int tx_nccl_issue(tx_nccl* l, const tx_op* ops, int n, int* at);
int tx_nccl_init(tx_nccl* l, void** comm, int ranks, const tx_id* id, int rank, int max_ctas);
int tx_nccl_split(tx_nccl* l, void* from, int color, int key, void** to, int max_ctas);

#endif
