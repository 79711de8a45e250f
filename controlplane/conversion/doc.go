// Package conversion answers the API server when it asks for an object in
// another version of its kind.
//
// In go reviews with objects, over HTTP; out come the same objects in the wanted
// version, or why not. The server asks itself, in process: the package knows
// nothing of who may ask, and what it reads is bounded.
package conversion
