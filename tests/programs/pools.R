# SPDX-License-Identifier: MIT
# Six products of 300 x 300 by two workers of the package parallel: pools.R fork|cluster. Prints the sum.
library(parallel)
options(matprod = "blas")
product <- function(i) { a <- matrix((seq_len(90000) + i) %% 7, 300); sum(a %*% t(a)[, 300:1]) }
how <- commandArgs(TRUE)[1]
if (how == "fork") done <- mclapply(1:6, product, mc.cores = 2) else {
    pool <- makeCluster(2, outfile = "")
    clusterEvalQ(pool, options(matprod = "blas"))
    done <- parLapply(pool, 1:6, product)
    stopCluster(pool)
}
cat(sum(unlist(done)), "\n")
