// Package capacity adds up what the nodes of a member offer, and what its pods need of it.
//
// In go nodes and pods as a watch knows them, trimmed to what counts, and the models that
// nodes are counted by; out come the summaries of a Cluster's status. It reads and writes
// nothing, and adds up anew only what has changed.
package capacity
