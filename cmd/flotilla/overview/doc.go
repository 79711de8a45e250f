// Package overview has the commands that look at delivery as a whole: status,
// trace, tree and events.
//
// In go flags and the control plane's objects, and those of members through its
// proxy; out come texts, and values for scripts. What is shown is decided in
// situation, lineage and record: here it is read. Nothing is written.
package overview
