! What `iosig generate --level hdf5` makes of flash.f90, by hand: each array as a data set, by collective writes. The
! program is flash.f90, which calls these where it has `output` and `input`.
module flash_io
  use mpi
  use hdf5
  implicit none
  integer, parameter, private :: nvar = 24, guard = 4, nplot = 4, room = 82, neighbours = 15
  integer, parameter, private :: plotted(nplot) = [1, 5, 6, 7]
  character(len=8), parameter, private :: names(nvar) = [character(len=8) :: 'dens', 'velx', 'vely', 'velz', 'pres', &
    'ener', 'temp', 'gamc', 'game', 'enuc', 'gpot', 'f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7', 'f8', 'f9', 'f10', 'f11', &
    'f12', 'f13']
  integer(HID_T), private :: file, space, dataset, transfer
  integer, private :: edge, blocks, first_block, all_blocks
  logical, private :: reads
  private :: check, begin, create, write_title, write_step, write_time, begin_transfer, end_transfer, move_integers, &
    move_numbers, move_floats, move_checkpoint

contains

  subroutine check(code)
    integer, intent(in) :: code
    integer :: ierr
    if (code < 0) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  subroutine begin(cells, own, first, all, is_input)
    integer, intent(in) :: cells, own, first, all
    logical, intent(in) :: is_input
    integer :: ierr
    edge = cells
    blocks = own
    first_block = first
    all_blocks = all
    reads = is_input
    call h5open_f(ierr)
    call check(ierr)
  end subroutine

  subroutine create(path)
    character(len=*), intent(in) :: path
    integer(HID_T) :: access, creation
    integer :: ierr
    call h5pcreate_f(H5P_FILE_ACCESS_F, access, ierr)
    call h5pset_fapl_mpio_f(access, MPI_COMM_WORLD, MPI_INFO_NULL, ierr)
    call h5pset_libver_bounds_f(access, H5F_LIBVER_V18_F, H5F_LIBVER_LATEST_F, ierr)
    call h5pset_all_coll_metadata_ops_f(access, .true., ierr)
    call h5pset_coll_metadata_write_f(access, .true., ierr)
    call h5pcreate_f(H5P_FILE_CREATE_F, creation, ierr)
    call h5pset_obj_track_times_f(creation, .false., ierr)
    call h5fcreate_f(path, H5F_ACC_TRUNC_F, file, ierr, creation, access)
    call check(ierr)
    call h5pclose_f(creation, ierr)
    call h5pclose_f(access, ierr)
  end subroutine

  subroutine write_title(text)
    character(len=*), intent(in) :: text
    integer(HID_T) :: type, scalar, attribute
    integer :: ierr
    call h5tcopy_f(H5T_C_S1, type, ierr)
    call h5tset_size_f(type, int(len(text), SIZE_T), ierr)
    call h5screate_f(H5S_SCALAR_F, scalar, ierr)
    call h5acreate_f(file, 'title', type, scalar, attribute, ierr)
    call h5awrite_f(attribute, type, text, [1_HSIZE_T], ierr)
    call check(ierr)
    call h5aclose_f(attribute, ierr)
    call h5sclose_f(scalar, ierr)
    call h5tclose_f(type, ierr)
  end subroutine

  subroutine write_step(step)
    integer, intent(in) :: step
    integer(HID_T) :: scalar, attribute
    integer :: ierr
    call h5screate_f(H5S_SCALAR_F, scalar, ierr)
    call h5acreate_f(file, 'step', H5T_STD_I32LE, scalar, attribute, ierr)
    call h5awrite_f(attribute, H5T_NATIVE_INTEGER, step, [1_HSIZE_T], ierr)
    call check(ierr)
    call h5aclose_f(attribute, ierr)
    call h5sclose_f(scalar, ierr)
  end subroutine

  subroutine write_time(time)
    double precision, intent(in) :: time
    integer(HID_T) :: scalar, attribute
    integer :: ierr
    call h5screate_f(H5S_SCALAR_F, scalar, ierr)
    call h5acreate_f(file, 'time', H5T_IEEE_F64LE, scalar, attribute, ierr)
    call h5awrite_f(attribute, H5T_NATIVE_DOUBLE, time, [1_HSIZE_T], ierr)
    call check(ierr)
    call h5aclose_f(attribute, ierr)
    call h5sclose_f(scalar, ierr)
  end subroutine

  ! Opens a data set, and selects this rank's blocks; `extents`: of the axes before that of the blocks.
  subroutine begin_transfer(name, type, extents)
    character(len=*), intent(in) :: name
    integer(HID_T), intent(in) :: type
    integer, intent(in) :: extents(:)
    integer(HSIZE_T) :: start(size(extents) + 1), count(size(extents) + 1)
    integer(HID_T) :: properties
    integer :: axes, ierr
    axes = size(extents) + 1
    start = 0
    start(axes) = first_block
    count = [extents, blocks]
    call h5screate_simple_f(axes, int([extents, all_blocks], HSIZE_T), space, ierr)
    call h5pcreate_f(H5P_DATASET_CREATE_F, properties, ierr)
    call h5pset_obj_track_times_f(properties, .false., ierr)
    call h5pset_fill_time_f(properties, H5D_FILL_TIME_NEVER_F, ierr)
    call h5pset_alloc_time_f(properties, H5D_ALLOC_TIME_EARLY_F, ierr)
    call h5pcreate_f(H5P_DATASET_XFER_F, transfer, ierr)
    call h5pset_dxpl_mpio_f(transfer, H5FD_MPIO_COLLECTIVE_F, ierr)
    if (reads) then
      call h5dopen_f(file, trim(name), dataset, ierr)
    else
      call h5dcreate_f(file, trim(name), type, space, dataset, ierr, properties)
    end if
    call check(ierr)
    call h5pclose_f(properties, ierr)
    call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, start, count, ierr)
  end subroutine

  ! `code`: of the transfer.
  subroutine end_transfer(code, in_memory)
    integer, intent(in) :: code
    integer(HID_T), intent(in) :: in_memory
    integer :: ierr
    call check(code)
    call h5dclose_f(dataset, ierr)
    call h5pclose_f(transfer, ierr)
    call h5sclose_f(space, ierr)
    call h5sclose_f(in_memory, ierr)
  end subroutine

  subroutine move_integers(name, extents, array)
    character(len=*), intent(in) :: name
    integer, intent(in) :: extents(:)
    integer, intent(inout) :: array(*)
    integer(HSIZE_T) :: elements(1)
    integer(HID_T) :: in_memory
    integer :: ierr
    elements = product(extents)*blocks
    call begin_transfer(name, H5T_STD_I32LE, extents)
    call h5screate_simple_f(1, elements, in_memory, ierr)
    if (reads) then
      call h5dread_f(dataset, H5T_NATIVE_INTEGER, array(:elements(1)), elements, ierr, in_memory, space, transfer)
    else
      call h5dwrite_f(dataset, H5T_NATIVE_INTEGER, array(:elements(1)), elements, ierr, in_memory, space, transfer)
    end if
    call end_transfer(ierr, in_memory)
  end subroutine

  ! The elements of `array` that `in_memory` selects among its first `all`.
  subroutine move_numbers(name, extents, array, all, in_memory)
    character(len=*), intent(in) :: name
    integer, intent(in) :: extents(:), all
    double precision, intent(inout) :: array(*)
    integer(HID_T), intent(in) :: in_memory
    integer(HSIZE_T) :: elements(1)
    integer :: ierr
    elements = all
    call begin_transfer(name, H5T_IEEE_F64LE, extents)
    if (reads) then
      call h5dread_f(dataset, H5T_NATIVE_DOUBLE, array(:all), elements, ierr, in_memory, space, transfer)
    else
      call h5dwrite_f(dataset, H5T_NATIVE_DOUBLE, array(:all), elements, ierr, in_memory, space, transfer)
    end if
    call end_transfer(ierr, in_memory)
  end subroutine

  subroutine move_floats(name, extents, array)
    character(len=*), intent(in) :: name
    integer, intent(in) :: extents(:)
    real, intent(in) :: array(*)
    integer(HSIZE_T) :: elements(1)
    integer(HID_T) :: in_memory
    integer :: ierr
    elements = product(extents)*blocks
    call begin_transfer(name, H5T_IEEE_F32LE, extents)
    call h5screate_simple_f(1, elements, in_memory, ierr)
    call h5dwrite_f(dataset, H5T_NATIVE_REAL, array(:elements(1)), elements, ierr, in_memory, space, transfer)
    call end_transfer(ierr, in_memory)
  end subroutine

  subroutine move_checkpoint(lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    integer, intent(inout) :: lrefine(*), nodetype(*), gid(*)
    double precision, intent(inout) :: coord(*), sizes(*), bnd_box(*), unk(*)
    integer(HSIZE_T) :: whole(5), first(5), count(5)
    integer(HID_T) :: in_memory
    integer :: none(0), v, ierr
    call move_integers('lrefine', none, lrefine)
    call move_integers('nodetype', none, nodetype)
    call move_integers('gid', [neighbours], gid)
    call h5screate_simple_f(1, int([3*blocks], HSIZE_T), in_memory, ierr)
    call move_numbers('coord', [3], coord, 3*blocks, in_memory)
    call h5screate_simple_f(1, int([3*blocks], HSIZE_T), in_memory, ierr)
    call move_numbers('size', [3], sizes, 3*blocks, in_memory)
    call h5screate_simple_f(1, int([6*blocks], HSIZE_T), in_memory, ierr)
    call move_numbers('bnd_box', [2, 3], bnd_box, 6*blocks, in_memory)
    whole = [nvar, edge + 2*guard, edge + 2*guard, edge + 2*guard, room]
    count = [1, edge, edge, edge, blocks]
    do v = 1, nvar
      first = [v - 1, guard, guard, guard, 0]
      call h5screate_simple_f(5, whole, in_memory, ierr)
      call h5sselect_hyperslab_f(in_memory, H5S_SELECT_SET_F, first, count, ierr)
      call move_numbers(names(v), [edge, edge, edge], unk, int(product(whole)), in_memory)
    end do
  end subroutine

  subroutine write_files(path, cells, own, first, all, lrefine, nodetype, gid, coord, sizes, bnd_box, unk, corners)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, own, first, all
    integer, intent(inout) :: lrefine(*), nodetype(*), gid(*)
    double precision, intent(inout) :: coord(*), sizes(*), bnd_box(*)
    double precision, intent(inout) :: unk(nvar, 1 - guard:cells + guard, 1 - guard:cells + guard, 1 - guard:cells + guard, room)
    real, intent(in) :: corners(cells + 1, cells + 1, cells + 1, room, nplot)
    integer :: v, ierr
    call begin(cells, own, first, all, .false.)
    call create(trim(path)//'.checkpoint')
    call write_title('FLASH-like checkpoint')
    call write_step(42)
    call write_time(0.5d0)
    call move_checkpoint(lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    call h5fclose_f(file, ierr)
    call check(ierr)
    call create(trim(path)//'.centers')
    do v = 1, nplot ! collective transfers convert nothing
      call move_floats(names(plotted(v)), [cells, cells, cells], real(unk(plotted(v), 1:cells, 1:cells, 1:cells, :own)))
    end do
    call h5fclose_f(file, ierr)
    call check(ierr)
    call create(trim(path)//'.corners')
    do v = 1, nplot
      call move_floats(names(plotted(v)), [cells + 1, cells + 1, cells + 1], corners(:, :, :, :, v))
    end do
    call h5fclose_f(file, ierr)
    call check(ierr)
  end subroutine

  subroutine read_files(path, cells, own, first, all, lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, own, first, all
    integer, intent(inout) :: lrefine(*), nodetype(*), gid(*)
    double precision, intent(inout) :: coord(*), sizes(*), bnd_box(*), unk(*)
    integer(HID_T) :: access
    integer :: ierr
    call begin(cells, own, first, all, .true.)
    call h5pcreate_f(H5P_FILE_ACCESS_F, access, ierr)
    call h5pset_fapl_mpio_f(access, MPI_COMM_WORLD, MPI_INFO_NULL, ierr)
    call h5fopen_f(trim(path)//'.checkpoint', H5F_ACC_RDONLY_F, file, ierr, access)
    call check(ierr)
    call h5pclose_f(access, ierr)
    call move_checkpoint(lrefine, nodetype, gid, coord, sizes, bnd_box, unk)
    call h5fclose_f(file, ierr)
    call check(ierr)
  end subroutine
end module
