// Package framework is what a placement plugin is written against.
//
// In go one request and one cluster of a snapshot; out comes a reason to
// refuse the cluster, or a score. Plugins keep no state and change nothing:
// what a plugin needs to know is in the request. A plugin of one's own
// implements Filter, Score or both, and is added to the options of a
// placement.
package framework
