// Package cluster keeps the status of each Cluster up to date.
//
// It reads Clusters, the Secrets with their credentials and, through
// internal/members, the members themselves. It writes for each Cluster: its
// execution namespace, its finalizer, the taints not-ready and unreachable, and
// its status; and, to a member, the claim of its hub. It opens the connection to a member in push mode when its Cluster
// appears, follows it from a goroutine of its own, and closes it when the
// Cluster is gone: after the execution namespace is empty and no binding names
// the cluster any more. The status is written when it changes, never as a
// heartbeat. Members in pull mode report for themselves.
//
// Reasons: Ready True/ClusterReady, False/ClusterNotReady,
// False/ClusterNotReachable, False/StatusCollectionFailed,
// False/IdentityMismatch and False/ClaimedByAnotherHub; Claimed False/NotWritable;
// Held True/StoreSetBack; CompleteAPIEnablements True/Complete, False/Partial,
// False/Empty. Ready only turns after the other answer has stood for a while.
package cluster
