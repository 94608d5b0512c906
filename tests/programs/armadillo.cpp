// SPDX-License-Identifier: MIT
// Armadillo: fmat products are sgemm_. The operands are integers, so products are exact on any BLAS.
#include <armadillo>
#include <cstdio>

int main()
{
    arma::fmat a(150, 90), b(90, 130);
    for (arma::uword i = 0; i < a.n_elem; i++) a(i) = float(int(i % 7) - 3);
    for (arma::uword i = 0; i < b.n_elem; i++) b(i) = float(int(i % 5) - 2);
    arma::fmat c = a * b, d = b.t() * a.t();
    const int same = arma::approx_equal(c, d.t(), "absdiff", 0);
    std::printf("armadillo %g %g %d\n", double(c(3, 4)), double(arma::accu(c)), same);
}
