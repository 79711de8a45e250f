// Package inspection has the commands that show a fleet: the objects on the control plane and in
// the members, their logs and usage, and the APIs of the servers.
//
// In go flags; out comes what kubectl prints, for one server or for many together. It changes
// nothing on the control plane; exec and attach run the user's commands inside a member.
package inspection
