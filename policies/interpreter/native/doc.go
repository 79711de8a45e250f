// Package native knows the kinds of Kubernetes itself.
//
// In go objects of these kinds; out come their replicas, health, statuses and
// dependencies. Fields are read as they stand: what has an unexpected type
// counts as absent, except where a number would silently be wrong.
package native
