/* The main program of I/O by hand, which defines write_files() and read_files(): writes the files REPEATS times and
   prints the seconds that each time took, or restarts from them. With `naive` the I/O is the simplest that is correct:
   one blocking call for each array, and no hints.

     PROGRAM FILE SIZE [REPEATS [naive|restart]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_naive, reads;

static void make_arrays(int size);
static long visit_cells(int fills);
static void remove_files(const char* path);
static void write_files(const char* path);
static void read_files(const char* path);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  is_naive = argc > 4 && strcmp(argv[4], "naive") == 0;
  reads = argc > 4 && strcmp(argv[4], "restart") == 0;
  make_arrays(atoi(argv[2]));
  if (reads) {
    read_files(argv[1]);
    printf("%ld cells differ\n", visit_cells(0));
    MPI_Finalize();
    return 0;
  }
  visit_cells(1);
  for (int repeat = 0; repeat < (argc > 3 ? atoi(argv[3]) : 1); repeat++) {
    remove_files(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime();
    write_files(argv[1]);
    seconds += MPI_Wtime();
    printf("%.6f\n", seconds);
  }
  MPI_Finalize();
  return 0;
}
