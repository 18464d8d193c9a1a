! What `iosig generate --level pnetcdf` makes of flash.f90, by hand: variables posted without waiting, then written
! together. The program is flash.f90, which calls these where it has `output` and `input`.
module flash_io
  use mpi
  use pnetcdf
  implicit none
  integer, parameter, private :: nvar = 24, guard = 4, nplot = 4, room = 82, neighbours = 15
  integer, parameter, private :: plotted(nplot) = [1, 5, 6, 7]
  character(len=8), parameter, private :: names(nvar) = [character(len=8) :: 'dens', 'velx', 'vely', 'velz', 'pres', &
    'ener', 'temp', 'gamc', 'game', 'enuc', 'gpot', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7', 'f8', 'f9', 'f10', 'f11', &
    'f12', 'f13']
  character(len=8), parameter, private :: mesh(6) = [character(len=8) :: 'lrefine', 'nodetype', 'gid', 'coord', 'size', &
    'bnd_box']
  integer, private :: nc, number, variables(6 + nvar), requests(6 + nvar), edge, blocks, first_block, all_blocks
  logical, private :: reads
  private :: check, begin, define, define_axis, starts, counts, cells_type, move_cells, finish, write_plot

contains

  subroutine check(code)
    integer, intent(in) :: code
    integer :: ierr
    if (code == NF90_NOERR) return
    print '(a)', trim(nf90mpi_strerror(code))
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  subroutine begin(cells, own, first, all)
    integer, intent(in) :: cells, own, first, all
    edge = cells
    blocks = own
    first_block = first
    all_blocks = all
  end subroutine

  integer function define_axis(name, length) result(axis)
    character(len=*), intent(in) :: name
    integer, intent(in) :: length
    call check(nf90mpi_def_dim(nc, name, int(length, MPI_OFFSET_KIND), axis))
  end function

  subroutine define(name, type, axes)
    character(len=*), intent(in) :: name
    integer, intent(in) :: type, axes(:)
    number = number + 1
    call check(nf90mpi_def_var(nc, trim(name), type, axes, variables(number)))
  end subroutine

  ! The first element, and how many, of this rank along the axes of a data set; `extents`: of those before the blocks.
  function starts(extents) result(made)
    integer, intent(in) :: extents(:)
    integer(MPI_OFFSET_KIND) :: made(size(extents) + 1)
    made = 1
    made(size(made)) = first_block + 1
  end function

  function counts(extents) result(made)
    integer, intent(in) :: extents(:)
    integer(MPI_OFFSET_KIND) :: made(size(extents) + 1)
    made = [extents, blocks]
  end function

  ! One of the variables of `unk`, without guard cells.
  integer function cells_type(variable) result(type)
    integer, intent(in) :: variable
    integer :: whole, ierr
    whole = edge + 2*guard
    call MPI_Type_create_subarray(5, [nvar, whole, whole, whole, room], [1, edge, edge, edge, blocks], &
      [variable - 1, guard, guard, guard, 0], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, type, ierr)
    call MPI_Type_commit(type, ierr)
  end function

  ! Posts a variable of `unk` that is written, or reads it.
  subroutine move_cells(which, variable, unk)
    integer, intent(in) :: which, variable
    double precision, intent(inout) :: unk(*)
    integer :: extents(3), type, ierr
    extents = edge
    type = cells_type(variable)
    if (reads) then
      ierr = nfmpi_get_vara_all(nc, variables(which), starts(extents), counts(extents), unk, 1_MPI_OFFSET_KIND, type)
    else
      ierr = nfmpi_iput_vara(nc, variables(which), starts(extents), counts(extents), unk, 1_MPI_OFFSET_KIND, type, &
        requests(which))
    end if
    call check(ierr)
    call MPI_Type_free(type, ierr)
  end subroutine

  subroutine finish()
    integer :: statuses(6 + nvar), i
    call check(nf90mpi_wait_all(nc, number, requests, statuses))
    do i = 1, number
      call check(statuses(i))
    end do
    call check(nf90mpi_close(nc))
  end subroutine

  subroutine write_plot(path, points, unk, corners)
    character(len=*), intent(in) :: path
    integer, intent(in) :: points
    double precision, intent(inout) :: unk(*)
    real, intent(inout), contiguous :: corners(:, :, :, :, :)
    integer :: axes(4), extents(3), v
    number = 0
    call check(nf90mpi_create(MPI_COMM_WORLD, path, ior(NF90_CLOBBER, NF90_64BIT_DATA), MPI_INFO_NULL, nc))
    axes(4) = define_axis('blk', all_blocks)
    axes(3) = define_axis('z', points)
    axes(2) = define_axis('y', points)
    axes(1) = define_axis('x', points)
    do v = 1, nplot
      call define(names(plotted(v)), NF90_FLOAT, axes)
    end do
    call check(nf90mpi_enddef(nc))
    extents = points
    do v = 1, nplot
      if (points == edge) then
        call move_cells(v, plotted(v), unk)
      else
        call check(nf90mpi_iput_var(nc, variables(v), corners(:, :, :, :blocks, v), requests(v), starts(extents), &
          counts(extents)))
      end if
    end do
    call finish()
  end subroutine

  subroutine write_files(path, cells, own, first, all, lrefine, nodetype, gid, coord, sizes, bnd_box, unk, corners)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, own, first, all
    integer, intent(inout), contiguous :: lrefine(:), nodetype(:), gid(:, :)
    double precision, intent(inout), contiguous :: coord(:, :), sizes(:, :), bnd_box(:, :, :)
    double precision, intent(inout) :: unk(*)
    real, intent(inout), contiguous :: corners(:, :, :, :, :)
    integer :: none(0), blk, z, y, x, d, side, neighbour, v
    call begin(cells, own, first, all)
    reads = .false.
    number = 0
    call check(nf90mpi_create(MPI_COMM_WORLD, trim(path)//'.checkpoint', ior(NF90_CLOBBER, NF90_64BIT_DATA), &
      MPI_INFO_NULL, nc))
    blk = define_axis('blk', all_blocks)
    z = define_axis('z', edge)
    y = define_axis('y', edge)
    x = define_axis('x', edge)
    d = define_axis('d', 3)
    side = define_axis('side', 2)
    neighbour = define_axis('neighbour', neighbours)
    call check(nf90mpi_put_att(nc, NF90_GLOBAL, 'title', 'FLASH-like checkpoint'))
    call check(nf90mpi_put_att(nc, NF90_GLOBAL, 'step', 42))
    call check(nf90mpi_put_att(nc, NF90_GLOBAL, 'time', 0.5d0))
    call define(mesh(1), NF90_INT, [blk])
    call define(mesh(2), NF90_INT, [blk])
    call define(mesh(3), NF90_INT, [neighbour, blk])
    call define(mesh(4), NF90_DOUBLE, [d, blk])
    call define(mesh(5), NF90_DOUBLE, [d, blk])
    call define(mesh(6), NF90_DOUBLE, [side, d, blk])
    do v = 1, nvar
      call define(names(v), NF90_DOUBLE, [x, y, z, blk])
    end do
    call check(nf90mpi_enddef(nc))
    call check(nf90mpi_iput_var(nc, variables(1), lrefine(:blocks), requests(1), starts(none), counts(none)))
    call check(nf90mpi_iput_var(nc, variables(2), nodetype(:blocks), requests(2), starts(none), counts(none)))
    call check(nf90mpi_iput_var(nc, variables(3), gid(:, :blocks), requests(3), starts([neighbours]), &
      counts([neighbours])))
    call check(nf90mpi_iput_var(nc, variables(4), coord(:, :blocks), requests(4), starts([3]), counts([3])))
    call check(nf90mpi_iput_var(nc, variables(5), sizes(:, :blocks), requests(5), starts([3]), counts([3])))
    call check(nf90mpi_iput_var(nc, variables(6), bnd_box(:, :, :blocks), requests(6), starts([2, 3]), counts([2, 3])))
    do v = 1, nvar
      call move_cells(6 + v, v, unk)
    end do
    call finish()
    call write_plot(trim(path)//'.centers', edge, unk, corners)
    call write_plot(trim(path)//'.corners', edge + 1, unk, corners)
  end subroutine

  subroutine read_files(path, cells, own, first, all, lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, own, first, all
    integer, intent(inout), contiguous :: lrefine(:), nodetype(:), gid(:, :)
    double precision, intent(inout), contiguous :: coord(:, :), sizes(:, :), bnd_box(:, :, :)
    double precision, intent(inout) :: unk(*)
    integer :: none(0), i
    call begin(cells, own, first, all)
    reads = .true.
    call check(nf90mpi_open(MPI_COMM_WORLD, trim(path)//'.checkpoint', NF90_NOWRITE, MPI_INFO_NULL, nc))
    do i = 1, 6
      call check(nf90mpi_inq_varid(nc, trim(mesh(i)), variables(i)))
    end do
    do i = 1, nvar
      call check(nf90mpi_inq_varid(nc, trim(names(i)), variables(6 + i)))
    end do
    call check(nf90mpi_get_var_all(nc, variables(1), lrefine(:blocks), starts(none), counts(none)))
    call check(nf90mpi_get_var_all(nc, variables(2), nodetype(:blocks), starts(none), counts(none)))
    call check(nf90mpi_get_var_all(nc, variables(3), gid(:, :blocks), starts([neighbours]), counts([neighbours])))
    call check(nf90mpi_get_var_all(nc, variables(4), coord(:, :blocks), starts([3]), counts([3])))
    call check(nf90mpi_get_var_all(nc, variables(5), sizes(:, :blocks), starts([3]), counts([3])))
    call check(nf90mpi_get_var_all(nc, variables(6), bnd_box(:, :, :blocks), starts([2, 3]), counts([2, 3])))
    do i = 1, nvar
      call move_cells(6 + i, i, unk)
    end do
    call check(nf90mpi_close(nc))
  end subroutine
end module
