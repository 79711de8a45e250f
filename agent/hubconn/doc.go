// Package hubconn is the connection to a hub that is not always reachable.
//
// In go a transport and the identity of the hub that was there before; out come a
// transport that fails requests at once while the hub is out of reach, a probe now and
// then that finds out whether it is back, and callbacks when that changes. While the hub
// is away the program may send as many requests as it likes: what leaves the machine is
// one probe per pause.
//
// A hub with another identity counts as away: nothing is read from it and nothing is
// written to it. From a hub that was set back to an older backup, some objects are not
// read: requests for them fail as if it were away. The package never decides what is done
// with answers.
package hubconn
