// Package overview has the commands that show delivery as a whole: status, trace, tree and events.
//
// In go flags and the control plane's objects, and those of members through its proxy; out come
// texts, and values for scripts. This package reads; situation, lineage and record decide what is
// shown. It writes nothing.
package overview
