! SPDX-License-Identifier: MIT
! Plain Fortran: the intrinsic matmul, which -fexternal-blas sends to sgemm_, and a call by its name with
! hidden lengths.
program fortran
  implicit none
  integer, parameter :: n = 120
  real :: a(n, n), b(n, n), c(n, n), d(n, n)
  integer :: i, j
  external sgemm
  do j = 1, n
    do i = 1, n
      a(i, j) = mod(i + 3 * j, 7) - 3
      b(i, j) = mod(2 * i + j, 5) - 2
    end do
  end do
  c = matmul(a, b)
  d = 1
  call sgemm('N', 'Transpose', n, n, n, 2.0, a, n, b, n, -1.0, d, n)
  print '(a, 2i8)', 'matmul', nint(c(1, 1)), nint(sum(c))
  print '(a, 2i8)', 'sgemm ', nint(d(n, 1)), nint(sum(d))
end program fortran
