// Package quota writes into each FederatedResourceQuota what its namespace uses.
//
// It reads quotas, ResourceBindings and the Works that bring clusters their shares, and
// writes the status, which it alone writes: at once after a rest, and then a moment after
// something changed, so that many bindings that change in a row are two writes. Unchanged
// is none. What is used is added up from the bindings each time; what is used of a share is
// what its cluster says. It refuses nothing: that is admission's, in the control plane. It
// makes no Work. Events on the quota: AggregateStatusFailed and CollectOverallStatusFailed.
package quota
