// Package remark says to users what a Cluster says of itself beside whether it is ready, and what to do about a policy
// that carries nothing.
//
// In go the conditions of a Cluster, or a policy; out come what is the matter and what to do, in words. It reads nothing,
// and judges nothing that no condition says.
package remark
