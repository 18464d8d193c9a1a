! orders.c in Fortran: the same arguments, the same answers, the same files.
program orders
  use mpi
  implicit none
  integer, parameter :: ny = 2, nx = 3, nv = 3, ghost = 1, max_rows = 9
  double precision :: cells(nv, 1 - ghost:nx + ghost, 1 - ghost:ny + ghost, max_rows)
  integer :: turned(max_rows, ny, nx), rank, failed, ierr, wrong, changed, rows, start, count
  integer(kind=2), allocatable :: halves(:, :)
  character(len=512) :: verb, path, argument
  logical :: writes
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
  writes = verb == 'write'
  allocate (halves(count, ny))
  wrong = 0
  changed = 0
  call visit_all(.true., writes)
  !$sigio file f path(path) level(mpiio) comm(MPI_COMM_WORLD)
  !$sigio dims f r(rows) y(ny) x(nx)
  !$sigio decomp mine block(r: start, count)
  !$sigio dataset f.first type(double) dims(x, y, r) decomp(mine) data(cells) &
  !$sigio   memory(v: nv, x, y, r: max_rows) component(v: 0) ghost(y: ghost, x: ghost)
  !$sigio dataset f.last type(double) as(float) dims(x, y, r) decomp(mine) data(cells) &
  !$sigio   memory(v: nv, x, y, r: max_rows) component(v: nv - 1) ghost(y: ghost, x: ghost)
  !$sigio dataset f.turned type(int) dims(x, y, r) decomp(mine) data(turned) memory(r: max_rows, y, x)
  !$sigio dataset f.halves type(short) dims(y, r) decomp(mine) data(halves) memory(r, y)
  if (writes) then
    !$sigio output f status(failed)
  else
    !$sigio input f status(failed)
    call visit_all(.false., .true.)
  end if
  print '(4(i0, a))', rank, ': failed ', failed, ', wrong ', wrong, ', changed ', changed, ', line'
  call MPI_Finalize(ierr)

contains

  subroutine visit_all(fills, has_values)
    logical, intent(in) :: fills, has_values
    integer :: r, y, x, v
    logical :: inner
    double precision :: cell
    do r = 1, max_rows
      do y = 1 - ghost, ny + ghost
        do x = 1 - ghost, nx + ghost
          do v = 1, nv
            inner = r <= count .and. y >= 1 .and. y <= ny .and. x >= 1 .and. x <= nx .and. v /= 2
            cell = 100*(start + r - 1) + 10*(y - 1) + x - 1 + 1000*(v - 1) + 0.25d0
            call visit(cells(v, x, y, r), merge(cell, -7d0, inner .and. has_values), fills)
          end do
        end do
      end do
      do y = 1, ny
        do x = 1, nx
          cell = turned(r, y, x)
          call visit(cell, merge(10d0*(start + r - 1) + 2*(y - 1) + x - 1, -7d0, r <= count .and. has_values), fills)
          turned(r, y, x) = int(cell)
        end do
        if (r > count) cycle
        cell = halves(r, y)
        call visit(cell, merge(start + r - 1 + 100d0*(y - 1), -7d0, has_values), fills)
        halves(r, y) = int(cell, 2)
      end do
    end do
  end subroutine

  ! Fills an element, or compares it; `expected` is that of the block, or -7.
  subroutine visit(found, expected, fills)
    double precision, intent(inout) :: found
    double precision, intent(in) :: expected
    logical, intent(in) :: fills
    if (fills) then
      found = expected
    else if (found /= expected) then
      if (expected < 0) changed = changed + 1
      if (expected >= 0) wrong = wrong + 1
    end if
  end subroutine
end program
