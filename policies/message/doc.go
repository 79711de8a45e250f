// Package message composes what is sent about an Event, as each type of Provider wants it.
//
// In go an Event, and a Provider with the data of its Secret; out comes a request: address, headers and body. What others have
// written into an Event stands in it as text: it mentions nobody, closes no block, hides no link and loads
// nothing.
// Errors and requests print no secrets. The package sends nothing, which package messenger does.
package message
