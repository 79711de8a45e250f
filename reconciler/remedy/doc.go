// Package remedy writes on each Cluster what is to be done about it by the Remedies.
//
// In go Clusters and Remedies; out comes status.remedyActions, which this loop alone
// writes, once with each change of it. A Cluster is looked at when its conditions or
// its actions change, and when a Remedy that concerns it is made, changed or deleted.
// The loop does nothing about a Cluster itself: who routes traffic reads the actions.
package remedy
