! A template for `iosig generate`, as s3d.c is: both write the same file. Axes are named from the fastest on.
!
!   s3d write|restart FILE CELLS [REPEATS]
program s3d
  use mpi
  implicit none
  integer, parameter :: ghost = 2, species = 11
  integer :: edge, blocks(3), mine(3), rank, ranks, ierr, repeat, repeats
  double precision, allocatable :: yspecies(:, :, :, :), temp(:, :, :), pressure(:, :, :), u(:, :, :, :)
  double precision :: seconds
  character(len=512) :: verb, path, argument
  interface
    integer(c_int) function remove_file(path) bind(C, name='remove')
      use, intrinsic :: iso_c_binding, only: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
    end function
  end interface
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  if (command_argument_count() < 3) call MPI_Abort(MPI_COMM_WORLD, 2, ierr)
  call get_command_argument(1, verb)
  call get_command_argument(2, path)
  call get_command_argument(3, argument)
  read (argument, *) edge
  repeats = 1
  if (command_argument_count() > 3) then
    call get_command_argument(4, argument)
    read (argument, *) repeats
  end if
  blocks = 0
  call MPI_Dims_create(ranks, 3, blocks, ierr)
  mine = [rank/(blocks(2)*blocks(3)), mod(rank/blocks(3), blocks(2)), mod(rank, blocks(3))] ! along z, y, x
  allocate (yspecies(1 - ghost:edge + ghost, 1 - ghost:edge + ghost, 1 - ghost:edge + ghost, species), source=0d0)
  allocate (u(1 - ghost:edge + ghost, 1 - ghost:edge + ghost, 1 - ghost:edge + ghost, 3), source=0d0)
  allocate (temp(1 - ghost:edge + ghost, 1 - ghost:edge + ghost, 1 - ghost:edge + ghost), source=0d0)
  allocate (pressure, source=temp)
  !$sigio file ckpt path(path) level(pnetcdf) comm(MPI_COMM_WORLD) decomp(blk)
  !$sigio dims ckpt s(species) d(3) z(edge*blocks(1)) y(edge*blocks(2)) x(edge*blocks(3))
  !$sigio attr ckpt title("S3D-like checkpoint") version(3)
  !$sigio decomp blk block(z: mine(1)*edge, edge; y: mine(2)*edge, edge; x: mine(3)*edge, edge)
  !$sigio dataset ckpt.yspecies type(double) dims(x, y, z, s) data(yspecies) ghost(ghost) attr(units="1")
  !$sigio dataset ckpt.temp type(double) dims(x, y, z) data(temp) ghost(ghost) attr(units="K")
  !$sigio dataset ckpt.pressure type(double) dims(x, y, z) data(pressure) ghost(ghost) attr(units="Pa")
  !$sigio dataset ckpt.u type(double) dims(x, y, z, d) data(u) ghost(ghost) attr(units="m/s")
  if (verb == 'write') then
    ierr = visit_cells(.true.)
    do repeat = 1, repeats
      if (rank == 0) ierr = remove_file(trim(path)//achar(0)) ! each output makes a new file
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      seconds = -MPI_Wtime()
      !$sigio output ckpt
      seconds = seconds + MPI_Wtime()
      print '(f0.6)', seconds
    end do
  else
    !$sigio input ckpt
    print '(i0, a)', visit_cells(.false.), ' cells differ'
  end if
  call MPI_Finalize(ierr)

contains

  ! Fills the arrays, or returns how many cells of them have another value than s3d_state.h gives them.
  integer function visit_cells(fills) result(wrong)
    logical, intent(in) :: fills
    integer :: k, j, i, c
    wrong = 0
    do k = 1, edge
      do j = 1, edge
        do i = 1, edge
          do c = 1, species
            call visit(yspecies(i, j, k, c), expected(0, c, k, j, i), fills, wrong)
          end do
          call visit(temp(i, j, k), expected(1, 1, k, j, i), fills, wrong)
          call visit(pressure(i, j, k), expected(2, 1, k, j, i), fills, wrong)
          do c = 1, 3
            call visit(u(i, j, k, c), expected(3, c, k, j, i), fills, wrong)
          end do
        end do
      end do
    end do
  end function

  subroutine visit(cell, value, fills, wrong)
    double precision, intent(inout) :: cell
    double precision, intent(in) :: value
    logical, intent(in) :: fills
    integer, intent(inout) :: wrong
    if (fills) cell = value
    if (cell /= value) wrong = wrong + 1
  end subroutine

  double precision function expected(array, component, k, j, i)
    integer, intent(in) :: array, component, k, j, i
    double precision :: z, y, x
    z = dble(mine(1))*edge + k - 1
    y = dble(mine(2))*edge + j - 1
    x = dble(mine(3))*edge + i - 1
    expected = ((z*blocks(2)*edge + y)*blocks(3)*edge + x)*64 + 16*array + component - 1
  end function
end program
