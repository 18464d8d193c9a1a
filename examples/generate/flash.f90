! A template for `iosig generate`, as flash.c is: both write the same files. Axes are named from the fastest on; flash_state.h
! says what the arrays are.
!
!   flash write|restart FILE CELLS [REPEATS]
program flash
  use mpi
  implicit none
  integer, parameter :: nvar = 24, guard = 4, nplot = 4, least_blocks = 80, room = least_blocks + 2, neighbours = 15
  integer, parameter :: plotted(nplot) = [1, 5, 6, 7] ! density, pressure, energy, temperature
  integer :: edge, blocks, first_block, all_blocks, rank, ranks, ierr, repeat, repeats, each
  integer :: lrefine(room), nodetype(room), gid(neighbours, room)
  double precision :: coord(3, room), sizes(3, room), bnd_box(2, 3, room), seconds
  double precision, allocatable :: unk(:, :, :, :, :)
  real, allocatable :: corners(:, :, :, :, :)
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
  call get_command_argument(4, argument)
  if (argument /= '') read (argument, *) repeats
  all_blocks = 0
  do each = 0, ranks - 1
    if (each == rank) first_block = all_blocks
    all_blocks = all_blocks + least_blocks + mod(each, 3)
  end do
  blocks = least_blocks + mod(rank, 3)
  allocate (unk(nvar, 1 - guard:edge + guard, 1 - guard:edge + guard, 1 - guard:edge + guard, room), source=0d0)
  allocate (corners(edge + 1, edge + 1, edge + 1, room, nplot), source=0.)
  !$sigio file ckpt path(trim(path)//'.checkpoint') level(pnetcdf) comm(MPI_COMM_WORLD) decomp(mine)
  !$sigio dims ckpt blk(all_blocks) z(edge) y(edge) x(edge) d(3) side(2) neighbour(neighbours)
  !$sigio decomp mine block(blk: first_block, blocks)
  !$sigio attr ckpt title("FLASH-like checkpoint") step(42) time(double: 0.5d0)
  !$sigio dataset ckpt type(int) dims(blk) data(lrefine(:blocks), nodetype(:blocks))
  !$sigio dataset ckpt.gid type(int) dims(neighbour, blk) data(gid(:, :blocks))
  !$sigio dataset ckpt type(double) dims(d, blk) data(coord(:, :blocks), size=sizes(:, :blocks))
  !$sigio dataset ckpt.bnd_box type(double) dims(side, d, blk) data(bnd_box(:, :, :blocks))
  !$sigio dataset ckpt type(double) dims(x, y, z, blk) data(unk) ghost(x: guard, y: guard, z: guard) &
  !$sigio   memory(var: nvar, x, y, z, blk: room) each(var: dens, velx, vely, velz, pres, ener, temp, gamc, game, &
  !$sigio   enuc, gpot, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13)
  !$sigio file centers path(trim(path)//'.centers') level(pnetcdf) comm(MPI_COMM_WORLD) access(write) decomp(mine)
  !$sigio dims centers blk(all_blocks) z(edge) y(edge) x(edge)
  !$sigio dataset centers type(double) as(float) dims(x, y, z, blk) data(unk) &
  !$sigio   memory(var: nvar, x, y, z, blk: room) each(var: dens, pres=4, ener, temp) ghost(x: guard, y: guard, z: guard)
  !$sigio file corners path(trim(path)//'.corners') level(pnetcdf) comm(MPI_COMM_WORLD) access(write) decomp(mine)
  !$sigio dims corners blk(all_blocks) z(edge + 1) y(edge + 1) x(edge + 1)
  !$sigio dataset corners type(float) dims(x, y, z, blk) data(corners) &
  !$sigio   memory(x, y, z, blk: room, var: nplot) each(var: dens, pres, ener, temp)
  if (verb == 'write') then
    ierr = visit_cells(.true.)
    do repeat = 1, repeats
      if (rank == 0) then ! each output makes new files
        ierr = remove_file(trim(path)//'.checkpoint'//achar(0))
        ierr = remove_file(trim(path)//'.centers'//achar(0))
        ierr = remove_file(trim(path)//'.corners'//achar(0))
      end if
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      seconds = -MPI_Wtime()
      !$sigio output ckpt centers corners
      seconds = seconds + MPI_Wtime()
      print '(f0.6)', seconds
    end do
  else
    !$sigio input ckpt
    print '(i0, a)', visit_cells(.false.), ' cells differ'
  end if
  call MPI_Finalize(ierr)

contains

  ! Fills the arrays, or returns how many cells have another value; guard cells are only filled.
  integer function visit_cells(fills) result(wrong)
    logical, intent(in) :: fills
    integer :: outside, b, k, j, i, v
    wrong = 0
    outside = merge(guard, 0, fills)
    do b = 1, blocks
      do k = 1 - outside, edge + outside
        do j = 1 - outside, edge + outside
          do i = 1 - outside, edge + outside
            do v = 1, nvar
              if (fills) unk(v, i, j, k, b) = expected(b, k, j, i, v)
              if (unk(v, i, j, k, b) /= expected(b, k, j, i, v)) wrong = wrong + 1
            end do
          end do
        end do
      end do
    end do
    if (fills) call make_mesh()
    if (fills) call make_corners()
  end function

  double precision function expected(b, k, j, i, v)
    integer, intent(in) :: b, k, j, i, v
    expected = dble(first_block + b - 1)*64 + k - 1 + guard
    expected = (expected*64 + j - 1 + guard)*64 + i - 1 + guard
    expected = expected*32 + v - 1
  end function

  subroutine make_mesh()
    integer :: b, number, i
    do b = 1, blocks
      number = first_block + b - 1
      lrefine(b) = 1 + mod(number, 5)
      nodetype(b) = 1 + mod(number, 2)
      gid(:, b) = [(mod(number + i, all_blocks), i = 1, neighbours)]
      sizes(:, b) = 1d0/2**lrefine(b)
      coord(:, b) = [(number + 0.25d0*i, i = 0, 2)]
      bnd_box(1, :, b) = coord(:, b) - sizes(:, b)/2
      bnd_box(2, :, b) = coord(:, b) + sizes(:, b)/2
    end do
  end subroutine

  ! A corner has the mean of the eight cells around it.
  subroutine make_corners()
    integer :: v, b, k, j, i
    do v = 1, nplot
      do b = 1, blocks
        do k = 1, edge + 1
          do j = 1, edge + 1
            do i = 1, edge + 1
              corners(i, j, k, b, v) = real(sum(unk(plotted(v), i - 1:i, j - 1:j, k - 1:k, b))/8)
            end do
          end do
        end do
      end do
    end do
  end subroutine
end program
