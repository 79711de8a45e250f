// Package remark says to users what a Cluster says of itself, what to do about what is not ready, or about a policy that
// carries nothing, and what keeps an object that has left a Kustomization.
//
// In go the conditions of a Cluster, a policy, a GitRepository or a Kustomization; out come what is the matter and what to do, in words. It reads nothing,
// and judges nothing that no condition says.
package remark
