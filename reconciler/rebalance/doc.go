// Package rebalance has workloads placed from scratch when a WorkloadRebalancer
// asks for it.
//
// In go WorkloadRebalancers and bindings; out comes, on each binding that is
// named, the time of the request, which the scheduler answers. Every workload is
// asked for once: what has succeeded is not asked for again, by no edit and no
// restart. The loop writes the status of rebalancers (what came of each
// workload, and when all was done) and deletes those whose time to live is over.
// It decides no placement. Reasons: ReferencedBindingNotFound for workloads that
// no policy carries.
package rebalance
