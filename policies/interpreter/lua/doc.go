// Package lua runs the Lua scripts of interpreter customizations.
//
// In go scripts, and objects as the hub or a member holds them; out come rules in
// the form of package kinds, and errors about a script or about what it returned.
// Scripts reach no file, no network and no process, keep nothing from call to
// call, and are stopped once they have used up a budget of steps or of memory:
// each instruction and each library function is charged before it runs. The same
// script gives the same answer to the same object each time.
package lua
