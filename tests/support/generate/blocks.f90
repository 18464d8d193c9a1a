! blocks.c in Fortran: the same arguments, the same answers, the same files.
program blocks
  use mpi
  implicit none
  integer, parameter :: width = 3, ghost = 2
  integer :: rank, failed, ierr, x
  integer(kind=8) :: rows, start, count, z, wrong, changed
  integer, allocatable :: grid(:, :)
  double precision :: head(width)
  character(len=512) :: verb, path, argument
  logical :: writes, is_inner
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (command_argument_count() < 4 + rank) call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
  failed = -1
  call get_command_argument(1, verb)
  call get_command_argument(2, path)
  call get_command_argument(3, argument)
  read (argument, *) rows
  call get_command_argument(4 + rank, argument)
  read (argument, *) start, count
  allocate (grid(1 - ghost:width + ghost, 1 - ghost:max(count, 0_8) + ghost), source=-7)
  writes = verb == 'write'
  head = 0
  if (writes) then
    head = [0.5d0, 1.5d0, 2.5d0]
    do z = 1, count
      do x = 1, width
        grid(x, z) = int(10*(start + z - 1) + x - 1)
      end do
    end do
  end if
  !$SIGIO file f path(path) level(mpiio) comm(MPI_COMM_WORLD) hint(access_style="write_once") ! a comment
  !$sigio dims f z(rows) x(width)
  !$sigio attr f step(int: 7*6) time(double: head(2)) name('it''s') &
  !$sigio&  small(2.5d-1)
  !$sigio decomp rows_of block(z: start, count)
  !$sigio dataset f.head type(double) dims(x) data(head)
  !$sigio dataset f.grid type(int) dims(x, z) decomp(rows_of) data(grid) ghost(z: ghost, x: ghost) attr(scale=0.5)
  if (writes) then
    !$sigio output f status(failed)
  else
    !$sigio input f status(failed)
  end if
  wrong = 0
  changed = 0
  do z = lbound(grid, 2), ubound(grid, 2)
    do x = lbound(grid, 1), ubound(grid, 1)
      is_inner = z >= 1 .and. z <= count .and. x >= 1 .and. x <= width
      if (is_inner .and. grid(x, z) /= 10*(start + z - 1) + x - 1) wrong = wrong + 1
      if (.not. is_inner .and. grid(x, z) /= -7) changed = changed + 1
    end do
  end do
  print '(i0, a, i0, a, i0, a, i0, a, 3(1x, f3.1), a)', rank, ': failed ', failed, ', wrong ', wrong, ', changed ', &
    changed, ', head', head, ', line'
  call MPI_Finalize(ierr)
end program
