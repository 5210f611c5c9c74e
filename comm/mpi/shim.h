// What the transport needs of an MPI library, found at run time. The prototypes are this file's own: handles are intptr_t, which holds
// Open MPI's pointers, the 32-bit integers of the MPICH family and those of the standard ABI alike, on little-endian machines.
#ifndef TRIAX_MPI_SHIM_H
#define TRIAX_MPI_SHIM_H

#include <stdint.h>

typedef intptr_t tx_handle;

// Each function: result type is int; name after MPI_, arguments.
#define TX_CALLS(X)                                                                            \
  X(Init_thread, (int*, char***, int, int*))                                                   \
  X(Finalize, (void))                                                                          \
  X(Get_library_version, (char*, int*))                                                        \
  X(Comm_rank, (tx_handle, int*))                                                              \
  X(Comm_size, (tx_handle, int*))                                                              \
  X(Comm_group, (tx_handle, tx_handle*))                                                       \
  X(Comm_create_group, (tx_handle, tx_handle, int, tx_handle*))                                \
  X(Comm_set_errhandler, (tx_handle, tx_handle))                                               \
  X(Group_incl, (tx_handle, int, const int*, tx_handle*))                                      \
  X(Group_free, (tx_handle*))                                                                  \
  X(Isend, (const void*, int, tx_handle, int, int, tx_handle, tx_handle*))                     \
  X(Irecv, (void*, int, tx_handle, int, int, tx_handle, tx_handle*))                           \
  X(Test, (tx_handle*, int*, void*))                                                           \
  X(Cancel, (tx_handle*))                                                                      \
  X(Iallreduce, (const void*, void*, int, tx_handle, tx_handle, tx_handle, tx_handle*))        \
  X(Ireduce, (const void*, void*, int, tx_handle, tx_handle, int, tx_handle, tx_handle*))      \
  X(Ireduce_scatter_block, (const void*, void*, int, tx_handle, tx_handle, tx_handle, tx_handle*)) \
  X(Iallgather, (const void*, int, tx_handle, void*, int, tx_handle, tx_handle, tx_handle*))   \
  X(Ialltoall, (const void*, int, tx_handle, void*, int, tx_handle, tx_handle, tx_handle*))    \
  X(Ibcast, (void*, int, tx_handle, int, tx_handle, tx_handle*))                               \
  X(Op_create, (void (*)(void*, void*, int*, void*), int, tx_handle*))                         \
  X(Error_string, (int, char*, int*))

#define TX_FIELD(name, args) int(*name) args;

enum { tx_open_mpi = 1, tx_mpich = 2, tx_standard = 3 };
enum { tx_byte, tx_short, tx_int, tx_float, tx_double, tx_types };
enum { tx_sum, tx_max_float, tx_max_double, tx_ops };

typedef struct {
  TX_CALLS(TX_FIELD)
  int family;
  tx_handle world, errors_return, request_null, type[tx_types], op[tx_ops];
  void *in_place, *status_ignore;
  int any_source;
} tx_mpi;

tx_mpi* tx_load(const char* path, char* why, int n);
int tx_init(tx_mpi* m, int* rank, int* size);
int tx_split(tx_mpi* m, tx_handle from, const int* ranks, int n, int tag, tx_handle* to);

int tx_isend(tx_mpi* m, const void* p, int n, int type, int to, int tag, tx_handle comm, tx_handle* r);
int tx_irecv(tx_mpi* m, void* p, int n, int type, int from, int tag, tx_handle comm, tx_handle* r);
int tx_iallreduce(tx_mpi* m, void* p, int n, int type, int op, tx_handle comm, tx_handle* r);
int tx_ireduce(tx_mpi* m, const void* src, void* dst, int n, int type, int op, int root, tx_handle comm, tx_handle* r);
int tx_ireduce_scatter(tx_mpi* m, const void* src, void* dst, int n, int type, int op, tx_handle comm, tx_handle* r);
int tx_iallgather(tx_mpi* m, const void* src, void* dst, int n, int type, tx_handle comm, tx_handle* r);
int tx_ialltoall(tx_mpi* m, const void* src, void* dst, int n, int type, tx_handle comm, tx_handle* r);
int tx_ibcast(tx_mpi* m, void* p, int n, int type, int root, tx_handle comm, tx_handle* r);
void tx_cancel(tx_mpi* m, tx_handle* r);
int tx_finalize(tx_mpi* m);
void tx_version(tx_mpi* m, char* text);
void tx_error(tx_mpi* m, int code, char* text, int n);

// tx_poll tests n requests, over and over until one has ended, *wake is set or so many nanoseconds are over. It writes which ended and
// their error codes, and returns how many.
int tx_poll(tx_mpi* m, tx_handle* r, int n, int* ended, int* codes, const int* wake, int64_t nanoseconds);
void tx_sleep(int64_t nanoseconds);

#endif
