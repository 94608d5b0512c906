# SPDX-License-Identifier: MIT
import torch

a = torch.arange(40000.0, dtype=torch.float64).reshape(200, 200) * 7919 % 19 + 60 * torch.eye(200)
print((a @ (a + 1)).sum().item(), (a.float() @ a.float()).sum().item())
print(((a @ torch.linalg.solve(a, a) - a).abs().max() < 1e-7).item())
s = a @ a.t()
print((torch.linalg.cholesky(s)[0, 0] ** 2 - s[0, 0]).abs().item() < 1e-9)
x = torch.nn.Linear(200, 100)
torch.nn.init.ones_(x.weight)
x(a.float()).sum().backward()
print(x.weight.grad.sum().item())
