! What `iosig generate --level pnetcdf` makes of s3d.f90, by hand: variables posted without waiting, then written together.
! The program is s3d.f90, which calls these where it has `output` and `input`.
module s3d_io
  use mpi
  use pnetcdf
  implicit none
  integer, parameter, private :: ghost = 2, species = 11
  integer, private :: nc, edge, blocks(3), mine(3)
  private :: check, define, array_type, post, read_array

contains

  subroutine check(code)
    integer, intent(in) :: code
    integer :: ierr
    if (code == NF90_NOERR) return
    print '(a)', trim(nf90mpi_strerror(code))
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  subroutine define(name, axes, units, variable)
    character(len=*), intent(in) :: name, units
    integer, intent(in) :: axes(:)
    integer, intent(out) :: variable
    call check(nf90mpi_def_var(nc, name, NF90_DOUBLE, axes, variable))
    call check(nf90mpi_put_att(nc, variable, 'units', units))
  end subroutine

  ! The cells of an array without its ghost cells.
  integer function array_type(components) result(type)
    integer, intent(in) :: components
    integer :: whole(4), inner(4), first(4), ierr
    whole = [edge + 2*ghost, edge + 2*ghost, edge + 2*ghost, components]
    inner = [edge, edge, edge, components]
    first = [ghost, ghost, ghost, 0]
    call MPI_Type_create_subarray(4, whole, inner, first, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, type, ierr)
    call MPI_Type_commit(type, ierr)
  end function

  subroutine post(variable, array, components, request)
    integer, intent(in) :: variable, components
    double precision, intent(in) :: array(*)
    integer, intent(out) :: request
    integer(MPI_OFFSET_KIND) :: start(4), count(4)
    integer :: type, ierr
    start = [mine(3)*edge + 1, mine(2)*edge + 1, mine(1)*edge + 1, 1]
    count = [edge, edge, edge, components]
    type = array_type(components)
    call check(nfmpi_iput_vara(nc, variable, start, count, array, 1_MPI_OFFSET_KIND, type, request))
    call MPI_Type_free(type, ierr)
  end subroutine

  subroutine write_files(path, cells, all_blocks, own, yspecies, temp, pressure, u)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, all_blocks(3), own(3)
    double precision, intent(in) :: yspecies(*), temp(*), pressure(*), u(*)
    integer :: s, d, z, y, x, variables(4), requests(4), statuses(4), i
    edge = cells
    blocks = all_blocks
    mine = own
    call check(nf90mpi_create(MPI_COMM_WORLD, path, ior(NF90_CLOBBER, NF90_64BIT_DATA), MPI_INFO_NULL, nc))
    call check(nf90mpi_def_dim(nc, 's', int(species, MPI_OFFSET_KIND), s))
    call check(nf90mpi_def_dim(nc, 'd', 3_MPI_OFFSET_KIND, d))
    call check(nf90mpi_def_dim(nc, 'z', int(edge*blocks(1), MPI_OFFSET_KIND), z))
    call check(nf90mpi_def_dim(nc, 'y', int(edge*blocks(2), MPI_OFFSET_KIND), y))
    call check(nf90mpi_def_dim(nc, 'x', int(edge*blocks(3), MPI_OFFSET_KIND), x))
    call check(nf90mpi_put_att(nc, NF90_GLOBAL, 'title', 'S3D-like checkpoint'))
    call check(nf90mpi_put_att(nc, NF90_GLOBAL, 'version', 3))
    call define('yspecies', [x, y, z, s], '1', variables(1))
    call define('temp', [x, y, z], 'K', variables(2))
    call define('pressure', [x, y, z], 'Pa', variables(3))
    call define('u', [x, y, z, d], 'm/s', variables(4))
    call check(nf90mpi_enddef(nc))
    call post(variables(1), yspecies, species, requests(1))
    call post(variables(2), temp, 1, requests(2))
    call post(variables(3), pressure, 1, requests(3))
    call post(variables(4), u, 3, requests(4))
    call check(nf90mpi_wait_all(nc, 4, requests, statuses))
    do i = 1, 4
      call check(statuses(i))
    end do
    call check(nf90mpi_close(nc))
  end subroutine

  subroutine read_array(name, array, components)
    character(len=*), intent(in) :: name
    double precision, intent(inout) :: array(*)
    integer, intent(in) :: components
    integer(MPI_OFFSET_KIND) :: start(4), count(4)
    integer :: variable, type, ierr
    start = [mine(3)*edge + 1, mine(2)*edge + 1, mine(1)*edge + 1, 1]
    count = [edge, edge, edge, components]
    type = array_type(components)
    call check(nf90mpi_inq_varid(nc, name, variable))
    call check(nfmpi_get_vara_all(nc, variable, start, count, array, 1_MPI_OFFSET_KIND, type))
    call MPI_Type_free(type, ierr)
  end subroutine

  subroutine read_files(path, cells, all_blocks, own, yspecies, temp, pressure, u)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, all_blocks(3), own(3)
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    edge = cells
    blocks = all_blocks
    mine = own
    call check(nf90mpi_open(MPI_COMM_WORLD, path, NF90_NOWRITE, MPI_INFO_NULL, nc))
    call read_array('yspecies', yspecies, species)
    call read_array('temp', temp, 1)
    call read_array('pressure', pressure, 1)
    call read_array('u', u, 3)
    call check(nf90mpi_close(nc))
  end subroutine
end module
