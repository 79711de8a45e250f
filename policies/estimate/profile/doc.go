// Package profile says in little what the nodes of a cluster have free, for those who do
// not see them.
//
// In go the nodes and quotas of a cluster, as an Index has them; out comes a Profile, its
// text of MostBytes at most, and from that an Index again that questions are asked of. Nodes with
// the same labels and taints are of one kind, and those of a kind that have about the same
// free are one row with a count. What is reported as free is never more than it is: it is
// rounded down, coarser where the text would be too long, rows are joined by the least of
// each, and nodes left out at last. What was left out is recorded, and a question that
// depends on it has no answer: a label that distinguishes nodes, such as the hostname, or the
// quota of a namespace. The text of others is not trusted. The package reads and writes
// nothing.
package profile
