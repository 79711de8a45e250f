// Package estimators asks the accurate estimators of clusters, ours or Karmada's, over gRPC.
//
// In go the hub's Clusters and Services, which say where the estimator of each cluster is,
// and what is to run; out comes how much of it fits, or an error, which means that nothing
// is known. Each cluster has one connection, and one that is dead, hangs or answers nonsense
// costs the answers of no other. It decides nothing, and keeps no answer.
package estimators
