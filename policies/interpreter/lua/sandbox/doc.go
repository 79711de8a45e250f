// Package sandbox runs untrusted Lua scripts.
//
// In go the source of a script and values of objects; out come the values that it
// returns. Scripts reach no file, no network and no process, keep nothing from
// call to call, and are stopped once they have used up a budget of steps or of
// memory: each instruction and each library function is charged before it runs.
// The same script gives the same answer to the same values each time.
package sandbox
