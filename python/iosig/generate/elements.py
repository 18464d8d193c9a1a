"""The types of elements, as each library and language names them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ElementType:
    c: str
    mpi: str
    nc: str
    nc_call: str
    h5: str
    h5_file: str
    bytes: int
    mpi_fortran: str = ""
    nc_fortran: str = ""
    h5_fortran: str = ""
    fortran_kind: str = ""  # declares it


TYPES = {
    "double": ElementType(
        "double",
        "MPI_DOUBLE",
        "NC_DOUBLE",
        "double",
        "H5T_NATIVE_DOUBLE",
        "H5T_IEEE_F64LE",
        8,
        "MPI_DOUBLE_PRECISION",
        "NF90_DOUBLE",
        "H5T_NATIVE_DOUBLE",
        "real(real64)",
    ),
    "float": ElementType(
        "float",
        "MPI_FLOAT",
        "NC_FLOAT",
        "float",
        "H5T_NATIVE_FLOAT",
        "H5T_IEEE_F32LE",
        4,
        "MPI_REAL",
        "NF90_FLOAT",
        "H5T_NATIVE_REAL",
        "real(real32)",
    ),
    "int": ElementType(
        "int",
        "MPI_INT",
        "NC_INT",
        "int",
        "H5T_NATIVE_INT",
        "H5T_STD_I32LE",
        4,
        "MPI_INTEGER",
        "NF90_INT",
        "H5T_NATIVE_INTEGER",
        "integer(int32)",
    ),
    "int64": ElementType(
        "long long",
        "MPI_LONG_LONG",
        "NC_INT64",
        "longlong",
        "H5T_NATIVE_LLONG",
        "H5T_STD_I64LE",
        8,
        "MPI_INTEGER8",
        "NF90_INT64",
        "h5kind_to_type(iosig_i8, H5_INTEGER_KIND)",
        "integer(int64)",
    ),
    "uint64": ElementType(
        "unsigned long long",
        "MPI_UNSIGNED_LONG_LONG",
        "NC_UINT64",
        "ulonglong",
        "H5T_NATIVE_ULLONG",
        "H5T_STD_U64LE",
        8,
    ),
    "short": ElementType(
        "short",
        "MPI_SHORT",
        "NC_SHORT",
        "short",
        "H5T_NATIVE_SHORT",
        "H5T_STD_I16LE",
        2,
        "MPI_INTEGER2",
        "NF90_SHORT",
        "h5kind_to_type(iosig_i2, H5_INTEGER_KIND)",
        "integer(int16)",
    ),
    "int8": ElementType(
        "signed char",
        "MPI_SIGNED_CHAR",
        "NC_BYTE",
        "schar",
        "H5T_NATIVE_SCHAR",
        "H5T_STD_I8LE",
        1,
        "MPI_INTEGER1",
        "NF90_BYTE",
        "h5kind_to_type(iosig_i1, H5_INTEGER_KIND)",
        "integer(int8)",
    ),
    "uint8": ElementType(
        "unsigned char", "MPI_UNSIGNED_CHAR", "NC_UBYTE", "uchar", "H5T_NATIVE_UCHAR", "H5T_STD_U8LE", 1
    ),
}
