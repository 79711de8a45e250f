// Package loop is the kit that every reconciler is built from: phases that run
// in order, errors that say what to do next, and the turn from both into a
// controller-runtime result.
//
// In go a state value and a list of phases; out comes when to look again. Inbox takes what
// others have a loop look at. The
// package never reads or writes an object.
package loop
