! parts.c in Fortran: the same arguments, the same answers, the same files.
program parts
  use mpi
  implicit none
  integer, parameter :: all_planes = 5, all_rows = 4, all_columns = 6
  integer :: rank, failed, ierr, nz, ny, zsize, ysize, n, planes, rows, z, y, i, j, k, wrong
  integer, allocatable :: columns(:)
  integer(kind=2), allocatable :: grid(:, :, :), wanted(:, :, :)
  double precision, allocatable :: plain(:)
  character(len=512) :: verb, path, argument
  logical :: has_plain
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call get_command_argument(1, verb)
  call get_command_argument(2, path)
  call get_command_argument(3, argument)
  read (argument, *) nz, ny
  call get_command_argument(4, argument)
  read (argument, *) zsize, ysize
  call get_command_argument(5 + rank, argument)
  n = 0
  if (argument /= '-') n = 1
  do i = 1, len_trim(argument)
    if (argument(i:i) == ',') n = n + 1
  end do
  allocate (columns(n))
  if (n > 0) read (argument, *) columns
  z = mod(rank/ny, nz)
  y = mod(rank, ny)
  planes = count(dealt(all_planes, z, nz, zsize))
  rows = count(dealt(all_rows, y, ny, ysize))
  has_plain = y == 0 .and. z == 0
  allocate (grid(0:n + 1, 0:rows + 1, 0:planes + 1), wanted(0:n + 1, 0:rows + 1, 0:planes + 1), plain(n))
  wanted = 0
  do i = 1, planes
    do j = 1, rows
      do k = 1, n
        wanted(k, j, i) = int(100*nth(dealt(all_planes, z, nz, zsize), i) + 10*nth(dealt(all_rows, y, ny, ysize), j) + &
          columns(k), 2)
      end do
    end do
  end do
  !$sigio file f path(path) level(mpiio) comm(MPI_COMM_WORLD)
  !$sigio dims f z(all_planes) y(all_rows) x(all_columns)
  !$sigio decomp grid cyclic(z: z, nz, zsize; y: y, ny, ysize) list(x: columns, n)
  !$sigio decomp plain list(x: columns, merge(n, 0, has_plain))
  !$sigio dataset f.plain type(double) dims(x) decomp(plain) data(plain)
  !$sigio dataset f.grid type(short) dims(x, y, z) decomp(grid) data(grid) ghost(z: 1, y: 1, x: 1)
  failed = -1
  plain = 0
  grid = 0
  if (verb == 'write') then
    plain = 0.5d0*columns
    grid = wanted
    !$sigio output f status(failed)
  else
    !$sigio input f status(failed)
  end if
  wrong = count(grid /= wanted)
  if (has_plain) wrong = wrong + count(abs(plain - 0.5d0*columns) > 0)
  print '(i0, a, i0, a, i0)', rank, ': failed ', failed, ', wrong ', wrong
  call MPI_Finalize(ierr)

contains

  function dealt(all, number, of, size) ! whether `number` gets an element
    integer, intent(in) :: all, number, of, size
    logical :: dealt(all)
    integer :: i
    dealt = [(mod((i - 1)/max(size, 1), of) == number, i=1, all)]
  end function

  integer function nth(gets, n) ! of those that are got, from 0
    logical, intent(in) :: gets(:)
    integer, intent(in) :: n
    integer, allocatable :: found(:)
    integer :: i
    found = pack([(i - 1, i=1, size(gets))], gets)
    nth = found(n)
  end function
end program
