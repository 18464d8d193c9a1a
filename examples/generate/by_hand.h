/* The main program of I/O by hand, which defines write_files(): writes the files REPEATS times and prints the seconds
   that each time took. With `naive` the I/O is the simplest that is correct: one blocking call for each array, and no
   hints.

     PROGRAM FILE SIZE [REPEATS [naive]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int is_naive;

static void make_arrays(int size);
static long visit_cells(int fills);
static void write_files(const char* path);

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  is_naive = argc > 4;
  make_arrays(atoi(argv[2]));
  visit_cells(1);
  for (int repeat = 0; repeat < (argc > 3 ? atoi(argv[3]) : 1); repeat++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = -MPI_Wtime();
    write_files(argv[1]);
    seconds += MPI_Wtime();
    printf("%.6f\n", seconds);
  }
  MPI_Finalize();
  return 0;
}
