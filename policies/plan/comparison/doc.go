// Package comparison says what a change to templates, policies, overrides or clusters does to each cluster.
//
// In go the plans of a fleet before a change and after it; out comes a Comparison: which clusters gain and lose what and
// why, every object that differs in a cluster, with equal differences grouped, the pods that restart, and what is risky
// about it. It compares what plan.Fleet returns and decides nothing by itself. Values of Secrets never come out: a digest
// with the caller's salt stands for each. Equal input gives equal output, and a plan compared with itself gives nothing.
package comparison
