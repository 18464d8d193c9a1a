! What `iosig generate --level mpiio` makes of flash.f90, by hand: each array as it is in a file, by collective writes.
! The program is flash.f90, which calls these where it has `output` and `input`.
module flash_io
  use mpi
  implicit none
  integer, parameter, private :: nvar = 24, guard = 4, nplot = 4, room = 82, neighbours = 15
  integer, parameter, private :: plotted(nplot) = [1, 5, 6, 7]
  integer, private :: file, edge, blocks, first_block, all_blocks
  integer(MPI_OFFSET_KIND), private :: at ! where the next array begins
  logical, private :: reads
  private :: check, begin, open_file, close_file, place_of, move_integers, move_numbers, write_floats, move_checkpoint, &
    write_centers, write_corners

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

  subroutine begin(cells, own, first, all, is_input)
    integer, intent(in) :: cells, own, first, all
    logical, intent(in) :: is_input
    edge = cells
    blocks = own
    first_block = first
    all_blocks = all
    reads = is_input
  end subroutine

  subroutine open_file(path)
    character(len=*), intent(in) :: path
    integer :: mode, ierr
    mode = merge(MPI_MODE_RDONLY, ior(MPI_MODE_CREATE, MPI_MODE_WRONLY), reads)
    call MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, file, ierr)
    call check(ierr)
    if (.not. reads) call MPI_File_set_size(file, 0_MPI_OFFSET_KIND, ierr)
    call check(ierr)
    at = 0
  end subroutine

  subroutine close_file()
    integer :: ierr
    call MPI_File_close(file, ierr)
    call check(ierr)
  end subroutine

  ! Where this rank's part of the next array begins, of which each block has `bytes` in the file.
  integer(MPI_OFFSET_KIND) function place_of(bytes) result(place)
    integer, intent(in) :: bytes
    place = at + first_block*int(bytes, MPI_OFFSET_KIND)
    at = at + all_blocks*int(bytes, MPI_OFFSET_KIND)
  end function

  subroutine move_integers(array, of_block)
    integer, intent(inout) :: array(*)
    integer, intent(in) :: of_block
    integer :: ierr
    if (reads) then
      call MPI_File_read_at_all(file, place_of(4*of_block), array, blocks*of_block, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    else
      call MPI_File_write_at_all(file, place_of(4*of_block), array, blocks*of_block, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    end if
    call check(ierr)
  end subroutine

  subroutine move_numbers(array, number, type, of_block)
    double precision, intent(inout) :: array(*)
    integer, intent(in) :: number, type, of_block
    integer :: ierr
    if (reads) then
      call MPI_File_read_at_all(file, place_of(8*of_block), array, number, type, MPI_STATUS_IGNORE, ierr)
    else
      call MPI_File_write_at_all(file, place_of(8*of_block), array, number, type, MPI_STATUS_IGNORE, ierr)
    end if
    call check(ierr)
  end subroutine

  subroutine write_floats(array, of_block)
    real, intent(in) :: array(*)
    integer, intent(in) :: of_block
    integer :: ierr
    call MPI_File_write_at_all(file, place_of(4*of_block), array, blocks*of_block, MPI_REAL, MPI_STATUS_IGNORE, ierr)
    call check(ierr)
  end subroutine

  subroutine move_checkpoint(path, lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    character(len=*), intent(in) :: path
    integer, intent(inout) :: lrefine(*), nodetype(*), gid(*)
    double precision, intent(inout) :: coord(*), sizes(*), bnd_box(*), unk(nvar, *)
    integer :: whole, type, v, ierr
    call open_file(trim(path)//'.checkpoint')
    call move_integers(lrefine, 1)
    call move_integers(nodetype, 1)
    call move_integers(gid, neighbours)
    call move_numbers(coord, 3*blocks, MPI_DOUBLE_PRECISION, 3)
    call move_numbers(sizes, 3*blocks, MPI_DOUBLE_PRECISION, 3)
    call move_numbers(bnd_box, 6*blocks, MPI_DOUBLE_PRECISION, 6)
    whole = edge + 2*guard
    call MPI_Type_create_subarray(5, [nvar, whole, whole, whole, room], [1, edge, edge, edge, blocks], &
      [0, guard, guard, guard, 0], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, type, ierr)
    call MPI_Type_commit(type, ierr)
    do v = 1, nvar
      call move_numbers(unk(v, 1), 1, type, edge**3)
    end do
    call MPI_Type_free(type, ierr)
    call close_file()
  end subroutine

  ! MPI-IO converts nothing: the doubles become single precision in a buffer.
  subroutine write_centers(path, unk)
    character(len=*), intent(in) :: path
    double precision, intent(in) :: unk(nvar, 1 - guard:edge + guard, 1 - guard:edge + guard, 1 - guard:edge + guard, room)
    real, allocatable :: buffer(:, :, :, :)
    integer :: v
    allocate (buffer(edge, edge, edge, blocks))
    call open_file(trim(path)//'.centers')
    do v = 1, nplot
      buffer = real(unk(plotted(v), 1:edge, 1:edge, 1:edge, :blocks))
      call write_floats(buffer, edge**3)
    end do
    call close_file()
  end subroutine

  subroutine write_corners(path, corners)
    character(len=*), intent(in) :: path
    real, intent(in) :: corners(edge + 1, edge + 1, edge + 1, room, nplot)
    integer :: v
    call open_file(trim(path)//'.corners')
    do v = 1, nplot
      call write_floats(corners(1, 1, 1, 1, v), (edge + 1)**3)
    end do
    call close_file()
  end subroutine

  subroutine write_files(path, cells, own, first, all, lrefine, nodetype, gid, coord, sizes, bnd_box, unk, corners)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, own, first, all
    integer, intent(inout) :: lrefine(*), nodetype(*), gid(*)
    double precision, intent(inout) :: coord(*), sizes(*), bnd_box(*), unk(*)
    real, intent(in) :: corners(*)
    call begin(cells, own, first, all, .false.)
    call move_checkpoint(path, lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    call write_centers(path, unk)
    call write_corners(path, corners)
  end subroutine

  subroutine read_files(path, cells, own, first, all, lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, own, first, all
    integer, intent(inout) :: lrefine(*), nodetype(*), gid(*)
    double precision, intent(inout) :: coord(*), sizes(*), bnd_box(*), unk(*)
    call begin(cells, own, first, all, .true.)
    call move_checkpoint(path, lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
  end subroutine
end module
