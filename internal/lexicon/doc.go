// Package lexicon keeps one copy of texts that come again and again.
//
// In go texts as a decoder makes them, each with memory of its own; out come
// equal ones that share it. The package keeps a fixed number of texts and no
// record of who has them, so it neither grows nor needs to be told that one is
// not used any more. It never changes what a text says.
package lexicon
