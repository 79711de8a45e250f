// Package wire has the messages of Git's protocol, versions 0 to 2.
//
// In go the bytes that a server sends, and what is wanted of it; out come what the server offers, its refs, the stream of a
// pack, and requests as bytes. It opens no connection and unpacks no object. Every reader is bounded; a server's text is
// handed on for telling refusals apart, and is in no error's message.
package wire
