/* SPDX-License-Identifier: MIT */
#include <Eigen/Dense>
#include <cstdio>

int main()
{
    Eigen::MatrixXd a(200, 200);
    for (int x = 0; x < a.size(); x++) a.data()[x] = x * 7919 % 19;
    const Eigen::MatrixXd c = a * (a.array() + 1).matrix();
    std::printf("%.0f\n", c.sum());
}
