// Package diskcache keeps on disk what the hub says about a cluster, so that its agent can
// start, and go on, without it.
//
// In go the lists and watches of a cache; out come lists and watches that answer
// from disk until the hub has answered once, and from the hub from then on. What
// the hub says is on disk before anybody in the program sees it; only statuses,
// which the program writes itself, follow a little later. When the hub answers
// after a start without it, everything is listed anew: what is taken over is the
// latest state, never the steps between.
//
// Every file is written under another name, synced and renamed, carries the hash
// of its content, and can be read by its owner alone. One that is damaged counts as
// not there. An object that is not there means nothing to anybody: nothing is
// removed from a member for it.
//
// Nobody starts from a folder that is older than what the member has seen: one that
// was put back, or whose disk did not take what the hub sent. Then the loops wait for the hub.
package diskcache
