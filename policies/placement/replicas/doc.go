// Package replicas divides the replicas of a workload among the clusters that
// were chosen for it.
//
// In go a count, clusters with weights or capacity, and where replicas run today;
// out comes a count per cluster. The counts add up to what was asked for, or
// there is an error: replicas are never lost and never made up.
package replicas
