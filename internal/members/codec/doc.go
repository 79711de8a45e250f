// Package codec reads what members answer, in fewer passes than the dynamic client's own
// decoders: those look at each byte of an event eleven times, this at four of them.
//
// In goes how a member is reached; out comes a dynamic client. Its objects, events and errors are
// exactly those of the ordinary one, which reads all that does not look as servers write it. The
// package keeps nothing, and sends nothing by itself.
package codec
