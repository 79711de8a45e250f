// Package inspection has the commands that look at a fleet: what there is on the
// control plane and in the members, what it logs and uses, and what the servers
// know.
//
// In go flags; out come what kubectl prints, for one server or for many side by
// side. It changes nothing on the control plane; exec and attach run what the user
// says inside a member.
package inspection
