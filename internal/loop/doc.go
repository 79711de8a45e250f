// Package loop is the kit that every reconciler is built from: phases that run
// in order, errors that carry what to do next, and the conversion of both into a
// controller-runtime result.
//
// In go a state value and a list of phases; out comes when to reconcile again. Inbox takes what
// other parts enqueue for a loop. The
// package never reads or writes an object.
package loop
