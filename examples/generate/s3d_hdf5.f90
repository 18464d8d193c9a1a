! What `iosig generate --level hdf5` makes of s3d.f90, by hand: each array as a data set, by collective writes. The program
! is s3d.f90, which calls these where it has `output` and `input`.
module s3d_io
  use mpi
  use hdf5
  implicit none
  integer, parameter, private :: ghost = 2, species = 11
  integer, private :: edge, blocks(3), mine(3)
  integer(HID_T), private :: file
  logical, private :: reads
  private :: check, write_text, move_array, move_arrays

contains

  subroutine check(code)
    integer, intent(in) :: code
    integer :: ierr
    if (code < 0) call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  subroutine write_text(owner, name, text)
    integer(HID_T), intent(in) :: owner
    character(len=*), intent(in) :: name, text
    integer(HID_T) :: type, space, attribute
    integer :: ierr
    call h5tcopy_f(H5T_C_S1, type, ierr)
    call check(ierr)
    call h5tset_size_f(type, int(len(text), SIZE_T), ierr)
    call h5screate_f(H5S_SCALAR_F, space, ierr)
    call h5acreate_f(owner, name, type, space, attribute, ierr)
    call check(ierr)
    call h5awrite_f(attribute, type, text, [1_HSIZE_T], ierr)
    call check(ierr)
    call h5aclose_f(attribute, ierr)
    call h5sclose_f(space, ierr)
    call h5tclose_f(type, ierr)
  end subroutine

  subroutine move_array(name, array, components, units)
    character(len=*), intent(in) :: name, units
    integer, intent(in) :: components
    double precision, intent(inout) :: array(*)
    integer(HSIZE_T) :: shape(4), start(4), count(4), whole(4), inner(4), all(1)
    integer(HID_T) :: in_file, in_memory, properties, transfer, dataset
    integer :: axes, ierr
    axes = merge(3, 4, components == 1) ! an array of one component has three axes
    shape = [edge*blocks(3), edge*blocks(2), edge*blocks(1), components]
    start = [edge*mine(3), edge*mine(2), edge*mine(1), 0]
    count = [edge, edge, edge, components]
    whole = [edge + 2*ghost, edge + 2*ghost, edge + 2*ghost, components]
    inner = [ghost, ghost, ghost, 0]
    all = product(whole)
    call h5screate_simple_f(axes, shape, in_file, ierr)
    call h5screate_simple_f(axes, whole, in_memory, ierr)
    call h5pcreate_f(H5P_DATASET_CREATE_F, properties, ierr)
    call h5pset_obj_track_times_f(properties, .false., ierr)
    call h5pset_fill_time_f(properties, H5D_FILL_TIME_NEVER_F, ierr)
    call h5pset_alloc_time_f(properties, H5D_ALLOC_TIME_EARLY_F, ierr)
    call h5pcreate_f(H5P_DATASET_XFER_F, transfer, ierr)
    call h5pset_dxpl_mpio_f(transfer, H5FD_MPIO_COLLECTIVE_F, ierr)
    if (reads) then
      call h5dopen_f(file, name, dataset, ierr)
    else
      call h5dcreate_f(file, name, H5T_IEEE_F64LE, in_file, dataset, ierr, properties)
    end if
    call check(ierr)
    if (.not. reads) call write_text(dataset, 'units', units)
    call h5sselect_hyperslab_f(in_file, H5S_SELECT_SET_F, start, count, ierr)
    call h5sselect_hyperslab_f(in_memory, H5S_SELECT_SET_F, inner, count, ierr)
    if (reads) then
      call h5dread_f(dataset, H5T_NATIVE_DOUBLE, array(:all(1)), all, ierr, in_memory, in_file, transfer)
    else
      call h5dwrite_f(dataset, H5T_NATIVE_DOUBLE, array(:all(1)), all, ierr, in_memory, in_file, transfer)
    end if
    call check(ierr)
    call h5dclose_f(dataset, ierr)
    call h5pclose_f(transfer, ierr)
    call h5pclose_f(properties, ierr)
    call h5sclose_f(in_memory, ierr)
    call h5sclose_f(in_file, ierr)
  end subroutine

  subroutine move_arrays(yspecies, temp, pressure, u)
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    call move_array('yspecies', yspecies, species, '1')
    call move_array('temp', temp, 1, 'K')
    call move_array('pressure', pressure, 1, 'Pa')
    call move_array('u', u, 3, 'm/s')
  end subroutine

  subroutine write_files(path, cells, all_blocks, own, yspecies, temp, pressure, u)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, all_blocks(3), own(3)
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    integer(HID_T) :: access, creation, space, attribute
    integer :: ierr
    edge = cells
    blocks = all_blocks
    mine = own
    reads = .false.
    call h5open_f(ierr)
    call h5pcreate_f(H5P_FILE_ACCESS_F, access, ierr)
    call h5pset_fapl_mpio_f(access, MPI_COMM_WORLD, MPI_INFO_NULL, ierr)
    call h5pset_libver_bounds_f(access, H5F_LIBVER_V18_F, H5F_LIBVER_LATEST_F, ierr)
    call h5pset_all_coll_metadata_ops_f(access, .true., ierr)
    call h5pset_coll_metadata_write_f(access, .true., ierr)
    call h5pcreate_f(H5P_FILE_CREATE_F, creation, ierr)
    call h5pset_obj_track_times_f(creation, .false., ierr)
    call h5fcreate_f(trim(path), H5F_ACC_TRUNC_F, file, ierr, creation, access)
    call check(ierr)
    call h5pclose_f(creation, ierr)
    call h5pclose_f(access, ierr)
    call write_text(file, 'title', 'S3D-like checkpoint')
    call h5screate_f(H5S_SCALAR_F, space, ierr)
    call h5acreate_f(file, 'version', H5T_STD_I32LE, space, attribute, ierr)
    call h5awrite_f(attribute, H5T_NATIVE_INTEGER, 3, [1_HSIZE_T], ierr)
    call check(ierr)
    call h5aclose_f(attribute, ierr)
    call h5sclose_f(space, ierr)
    call move_arrays(yspecies, temp, pressure, u)
    call h5fclose_f(file, ierr)
    call check(ierr)
  end subroutine

  subroutine read_files(path, cells, all_blocks, own, yspecies, temp, pressure, u)
    character(len=*), intent(in) :: path
    integer, intent(in) :: cells, all_blocks(3), own(3)
    double precision, intent(inout) :: yspecies(*), temp(*), pressure(*), u(*)
    integer(HID_T) :: access
    integer :: ierr
    edge = cells
    blocks = all_blocks
    mine = own
    reads = .true.
    call h5open_f(ierr)
    call h5pcreate_f(H5P_FILE_ACCESS_F, access, ierr)
    call h5pset_fapl_mpio_f(access, MPI_COMM_WORLD, MPI_INFO_NULL, ierr)
    call h5fopen_f(trim(path), H5F_ACC_RDONLY_F, file, ierr, access)
    call check(ierr)
    call h5pclose_f(access, ierr)
    call move_arrays(yspecies, temp, pressure, u)
    call h5fclose_f(file, ierr)
    call check(ierr)
  end subroutine
end module
