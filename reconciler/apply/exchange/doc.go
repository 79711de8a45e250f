// Package exchange has the revisions of Kustomizations count at the same time between which a commit moves objects.
//
// In go what an apply takes from others of its source, what leaves it, and Kustomizations as the control plane has them;
// out come those that it exchanges objects with, and for which of them a switch still waits. It writes nothing. That others
// are waited for stands in the condition Switching of who waits, for whoever leads next; since when is kept in mind, and begins
// anew after a restart.
package exchange
