// Package estimate says how many replicas still fit on a cluster.
//
// In go the resource summary that a cluster reports and what one replica asks
// for; out comes a count. It is an upper bound from sums over the whole
// cluster: it does not know how the free room is spread over nodes.
package estimate
