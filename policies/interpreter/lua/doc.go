// Package lua runs the Lua scripts of interpreter customizations.
//
// In go scripts, and objects as the hub or a member holds them; out come rules
// of the shape of package kinds, and what is wrong with a script or with what it
// returned. Scripts reach no file, no network and no process, keep nothing from
// call to call, and are stopped once they have used up a budget of steps or of
// memory: each instruction and each library function pays for what it is about
// to do before it does it. The same script gives the same answer to the same
// object each time.
package lua
