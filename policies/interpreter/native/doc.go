// Package native holds the rules for Kubernetes' own kinds.
//
// In go objects of these kinds; out come their replicas, health, statuses and
// dependencies. The status that a template gets passes the validation of its API
// server, whatever members report: counts that do not contradict each other, and
// times that can be parsed.
package native
