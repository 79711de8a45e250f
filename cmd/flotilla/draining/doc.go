// Package draining plans and watches the drain of a cluster, and brings back what was moved off
// clusters.
//
// In go the bindings of the control plane, and the nodes of clusters; out come rows for people or
// programs, and requests to place templates anew. The control plane decides what moves and when: a
// drain continues when nobody watches it.
package draining
