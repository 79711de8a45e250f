// Package flapping has a member come and go, and counts what the control plane makes of it.
//
// In go a fleet with failover, the member's process and how long it takes; out come the rows of a report: how often templates
// were moved, and how often the Cluster was written for each time that the member came or went. The package judges nothing but
// by the goals of the report.
package flapping
