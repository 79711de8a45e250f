// Package hubconn is the way to a hub that is not always there.
//
// In go a transport and the identity of the hub that was there before; out come a
// transport that refuses at once while the hub is out of reach, one request every
// now and then that finds out whether it is back, and word of both. While the hub
// is away the program may ask as often as it likes: what leaves the machine is one
// request per pause.
//
// A hub of another identity is one that is away: nothing is read from it and
// nothing written to it. From one that was set back to an older backup a part is not
// read: requests for that end as if it were away. The package never decides what is
// done with answers.
package hubconn
