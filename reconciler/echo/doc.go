// Package echo lets a loop read its own writes before its cache has them.
//
// In go the objects that the server answered a write with; out comes, for an
// object read from the cache, the newer of the two. Without it a loop that runs
// again at once would repeat what it has just done. An entry is dropped as soon
// as the cache has caught up, and after a while in any case: the cache always
// has the last word. Said does the same for what a loop tells users. The package
// calls no API.
package echo
