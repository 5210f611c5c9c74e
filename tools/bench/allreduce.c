// MPI_Allreduce of floats, in place, as a C program calls it: the figure that `go test -bench Wire ./comm/mpi` is held against.
//   mpicc -O2 allreduce.c -o allreduce && mpirun -n 2 ./allreduce 64
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void* a, const void* b) { return *(double*)a < *(double*)b ? -1 : 1; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = (argc > 1 ? atoi(argv[1]) : 64) << 18;
  enum { rounds = 21 };
  double took[rounds];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float* x = malloc((size_t)n * 4);
  for (int i = 0; i < n; i++) x[i] = 0;
  for (int i = -2; i < rounds; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= 0) took[i] = MPI_Wtime() - start;
  }
  qsort(took, rounds, sizeof *took, by_value);
  if (rank == 0) printf("raw MPI: %d ranks, %d MiB: median %.2f ms\n", size, n >> 18, 1e3 * took[rounds / 2]);
  MPI_Finalize();
}
