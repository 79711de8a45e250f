// Package plan computes what each cluster should hold, and why.
//
// In go templates, policies, overrides, clusters and today's bindings; out come
// the Works of every cluster with their manifests, byte for byte what the loops
// write. Works and Namespace are the parts that the loops use; Fleet composes
// everything for reviews. Equal input gives equal bytes.
package plan
