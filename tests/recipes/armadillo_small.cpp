/* SPDX-License-Identifier: MIT */
#include <armadillo>
#include <cstdio>

int main()
{
    arma::mat a(200, 200);
    for (unsigned x = 0; x < a.n_elem; x++) a[x] = x * 7919 % 19;
    a.diag() += 60;
    const arma::mat c = a * (a + 1);
    std::printf("%.0f %d\n", arma::accu(c), arma::abs(a * arma::solve(a, c) - c).max() < 1e-7);
}
