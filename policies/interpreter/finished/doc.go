// Package finished says of what runs to its end, such as a Job, whether it has come to it.
//
// In goes what a cluster reports of an object; out comes whether that will do nothing more there: it succeeded, or failed for
// good. Elsewhere it would only begin again. The package reads fields of status and decides nothing else. Of a kind that it
// does not know, nothing has ended.
package finished
