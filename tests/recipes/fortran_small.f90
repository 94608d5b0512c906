! SPDX-License-Identifier: MIT
program small
    implicit none
    double precision :: a(200, 200)
    integer :: i, j
    do j = 1, 200
        do i = 1, 200
            a(i, j) = mod((i + 200 * j) * 79, 19)
        end do
    end do
    print '(f0.0)', sum(matmul(a, a + 1))
end program small
