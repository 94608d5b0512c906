// SPDX-License-Identifier: MIT
// Least squares by dense normal equations, which LAPACK factors.
#include <ceres/ceres.h>
#include <cstdio>

enum { N = 200, ROWS = 300 };

struct Row : ceres::CostFunction {
    int row;
    explicit Row(int row) : row(row)
    {
        mutable_parameter_block_sizes()->push_back(N);
        set_num_residuals(1);
    }
    static double at(int i, int j) { return (i * 7919 + j * 31) % 19 + (i % N == j ? 50 : 0); }
    bool Evaluate(double const *const *x, double *residual, double **slopes) const override
    {
        *residual = 0;
        for (int j = 0; j < N; j++) {
            *residual += at(row, j) * (x[0][j] - j);
            if (slopes && slopes[0]) slopes[0][j] = at(row, j);
        }
        return true;
    }
};

int main()
{
    static double x[N];
    ceres::Problem problem;
    for (int i = 0; i < ROWS; i++) problem.AddResidualBlock(new Row(i), nullptr, x);
    ceres::Solver::Options options;
    options.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
    options.dense_linear_algebra_library_type = ceres::LAPACK;
    options.logging_type = ceres::SILENT;
    ceres::Solver::Summary summary;
    ceres::Solve(options, &problem, &summary);
    double off = 0;
    for (int j = 0; j < N; j++) off = std::max(off, std::abs(x[j] - j));
    std::printf("%d %d\n", summary.IsSolutionUsable(), off < 1e-6);
}
