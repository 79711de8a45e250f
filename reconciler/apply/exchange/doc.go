// Package exchange has the revisions of Kustomizations count at the same time between which a commit moves objects, and of which it
// edits what belongs together: a template in the one, and a policy or an override for it in the other.
//
// In go what an apply writes and takes from others of its source, what leaves it, and Kustomizations as the control plane has them;
// out come those that it is switched with, and for which of them a switch still waits. It writes nothing. That others
// are waited for stands in the condition Switching of who waits, for whoever leads next; since when is kept in mind, and begins
// anew after a restart.
package exchange
