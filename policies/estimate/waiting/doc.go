// Package waiting says in little which workloads of a cluster have replicas that find no node,
// for those who do not see its pods.
//
// In go what waits, as an Index has it, and the workloads that are reported; out comes a List,
// its text of MostBytes at most, and from that how many replicas of a workload have waited for
// so long. A List says since when, so that it stays the same while time passes. It never says
// more than there is: times are rounded up, and where the text would be too long, replicas are
// reported with those that wait for less, and the workloads that wait the shortest are left out,
// which is recorded. The text of others is not trusted: what is reported to wait since a future time
// counts since it was seen first. The package reads no clock, and writes nothing.
package waiting
