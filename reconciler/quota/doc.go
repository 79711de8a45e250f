// Package quota tells in each FederatedResourceQuota what its namespace uses.
//
// It reads quotas, ResourceBindings and the Works that bring clusters their shares, and
// writes the status, which it alone writes, a moment after something changed: many
// bindings that change at once are one write, and unchanged is none. What is used is
// added up from the bindings each time; what is used of a share is what its cluster
// says. It refuses nothing: that is admission's, in the control plane. It makes no Work.
package quota
