! records.c in Fortran: the same arguments, the same answers, the same files.
program records
  use mpi
  implicit none
  integer, parameter :: all_rows = 6, width = 3
  integer :: rank, ranks, failed, ierr, first, last, step, first_row, rows, x, y, wrong
  integer, allocatable :: grid(:, :), wanted(:, :)
  real :: mesh(width) = [0.25, 0.5, 0.75]
  double precision :: time
  character(len=512) :: verb, path, argument
  logical :: writes
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, verb)
  call get_command_argument(2, path)
  call get_command_argument(3, argument)
  read (argument, *) first
  call get_command_argument(4, argument)
  read (argument, *) last
  writes = verb == 'write'
  first_row = rank*all_rows/ranks
  rows = (rank + 1)*all_rows/ranks - first_row
  allocate (grid(0:width + 1, 0:rows + 1), wanted(0:width + 1, 0:rows + 1))
  failed = 0
  wrong = 0
  !$sigio file f path(path) level(pnetcdf) comm(MPI_COMM_WORLD)
  !$sigio dims f t(unlimited) y(all_rows) x(width)
  !$sigio attr f title("records")
  !$sigio decomp rows block(y: first_row, rows)
  !$sigio dataset f.mesh type(float) dims(x) data(mesh)
  !$sigio dataset f.time type(double) dims(t) data(time) attr(units="s")
  !$sigio dataset f.grid type(int) dims(x, y, t) decomp(rows) data(grid) ghost(y: 1, x: 1)
  do step = first, last
    if (failed /= 0) exit
    wanted = 0
    do y = 1, rows
      do x = 1, width
        wanted(x, y) = 100*step + 10*(first_row + y - 1) + x - 1
      end do
    end do
    time = merge(0.5d0*step, 0d0, writes)
    grid = merge(wanted, 0, writes)
    if (writes) then
      !$sigio output f record(step) status(failed)
    else
      !$sigio input f record(step) status(failed)
    end if
    if (abs(time - 0.5d0*step) > 0 .or. abs(mesh(2) - 0.5) > 0) wrong = wrong + 1
    wrong = wrong + count(grid /= wanted)
  end do
  print '(i0, a, i0, a, i0)', rank, ': failed ', failed, ', wrong ', wrong
  call MPI_Finalize(ierr)
end program
