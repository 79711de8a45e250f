// Package writecache lets a loop read its own writes before its informers have them: what
// client-go calls a mutation cache.
//
// In go the objects that the server answered a write with; out comes, for an
// object read from the informer's cache, the newer of the two. Without it a loop that runs
// again at once would repeat what it has just done. An entry is dropped as soon
// as the informer has caught up, and after a while in any case: the informer always
// has the last word. The package calls no API.
package writecache
