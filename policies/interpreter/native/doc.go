// Package native knows the kinds of Kubernetes itself.
//
// In go objects of these kinds; out come their replicas, health, statuses and
// dependencies. The status that a template gets is one that its server accepts,
// whatever members report: counts that fit each other, times that are times.
package native
