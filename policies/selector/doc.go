// Package selector reports whether a resource or a cluster is meant by a selector.
//
// In go the selectors of policies and the facts about a resource or a cluster;
// out comes a yes or no, or how specific the match is. A selector that cannot
// be parsed matches nothing here: admission refuses it with the reason.
package selector
