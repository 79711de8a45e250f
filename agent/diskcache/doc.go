// Package diskcache keeps the hub's objects for a cluster on disk, so that its agent can
// start, and go on, without the hub.
//
// In go the lists and watches of a cache; out come lists and watches that answer
// from disk until the hub has answered once, and from the hub from then on. What
// the hub sends is on disk before a loop sees it; only statuses,
// which the program writes itself, follow a little later. When the hub answers
// after a start without it, everything is listed again: loops see the
// latest state, never the steps between.
//
// Every file is written under another name, synced and renamed, carries the hash
// of its content, and is readable only by its owner. A damaged file counts as
// missing. No loop concludes anything from an object that is missing: nothing is
// removed from a member because of it.
//
// No agent starts from a folder that is older than what the member has seen: one that
// was put back, or whose disk did not take what the hub sent. Then the loops wait for the hub.
package diskcache
