// SPDX-License-Identifier: MIT
// Eigen with EIGEN_USE_BLAS, whose products are sgemm_ with beta = 1. The operands are integers, so products
// are exact on any BLAS.
#include <Eigen/Dense>
#include <cstdio>

int main()
{
    Eigen::MatrixXf a(150, 90), b(90, 130);
    for (int i = 0; i < a.size(); i++) a.data()[i] = float(i % 7 - 3);
    for (int i = 0; i < b.size(); i++) b.data()[i] = float(i % 5 - 2);
    Eigen::MatrixXf c = a * b, d = b.transpose() * a.transpose();
    std::printf("eigen %g %g %d\n", double(c(3, 4)), double(c.sum()), c == d.transpose());
}
