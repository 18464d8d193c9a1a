! What `iosig generate --level mpiio` makes of s3d.f90, by hand: each array as it is in one file, by collective writes.
! The program is s3d.f90, which calls these where it has `output` and `input`.
module s3d_io
  use mpi
  implicit none
  integer, parameter, private :: ghost = 2, species = 11
  integer, private :: edge, blocks(3), mine(3)
  logical, private :: reads
  private :: check, cells_type, move_array, move_arrays

contains

  subroutine check(code)
    integer, intent(in) :: code
    character(len=MPI_MAX_ERROR_STRING) :: text
    integer :: length, ierr
    if (code == MPI_SUCCESS) return
    call MPI_Error_string(code, text, length, ierr)
    print '(a)', text(:length)
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  integer function cells_type(whole, inner, first) result(type)
    integer, intent(in) :: whole(4), inner(4), first(4)
    integer :: ierr
    call MPI_Type_create_subarray(4, whole, inner, first, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, type, ierr)
    call MPI_Type_commit(type, ierr)
  end function

  subroutine move_array(file, at, array, components)
    integer, intent(in) :: file, components
    integer(MPI_OFFSET_KIND), intent(inout) :: at
    double precision, intent(inout) :: array(*)
    integer :: whole, sizes(4), local(4), in_file, in_memory, ierr
    whole = edge + 2*ghost
    sizes = [blocks(3)*edge, blocks(2)*edge, blocks(1)*edge, components]
    local = [edge, edge, edge, components]
    in_file = cells_type(sizes, local, [mine(3)*edge, mine(2)*edge, mine(1)*edge, 0])
    in_memory = cells_type([whole, whole, whole, components], local, [ghost, ghost, ghost, 0])
    call MPI_File_set_view(file, at, MPI_DOUBLE_PRECISION, in_file, 'native', MPI_INFO_NULL, ierr)
    call check(ierr)
    if (reads) then
      call MPI_File_read_all(file, array, 1, in_memory, MPI_STATUS_IGNORE, ierr)
    else
      call MPI_File_write_all(file, array, 1, in_memory, MPI_STATUS_IGNORE, ierr)
    end if
    call check(ierr)
    call MPI_Type_free(in_file, ierr)
    call MPI_Type_free(in_memory, ierr)
    at = at + 8*product(int(sizes, MPI_OFFSET_KIND))
  end subroutine

  subroutine move_arrays(file, yspecies, temp, pressure, u)
    integer, intent(inout) :: file
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    integer(MPI_OFFSET_KIND) :: at
    integer :: ierr
    at = 0
    call move_array(file, at, yspecies, species)
    call move_array(file, at, temp, 1)
    call move_array(file, at, pressure, 1)
    call move_array(file, at, u, 3)
    call MPI_File_close(file, ierr)
    call check(ierr)
  end subroutine

  subroutine write_files(path, cells, all_blocks, own, yspecies, temp, pressure, u)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, all_blocks(3), own(3)
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    integer :: file, ierr
    edge = cells
    blocks = all_blocks
    mine = own
    reads = .false.
    call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_CREATE, MPI_MODE_WRONLY), MPI_INFO_NULL, file, ierr)
    call check(ierr)
    call MPI_File_set_size(file, 0_MPI_OFFSET_KIND, ierr)
    call check(ierr)
    call move_arrays(file, yspecies, temp, pressure, u)
  end subroutine

  subroutine read_files(path, cells, all_blocks, own, yspecies, temp, pressure, u)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, all_blocks(3), own(3)
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    integer :: file, ierr
    edge = cells
    blocks = all_blocks
    mine = own
    reads = .true.
    call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call check(ierr)
    call move_arrays(file, yspecies, temp, pressure, u)
  end subroutine
end module
