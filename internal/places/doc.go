// Package places shares out between tenants what loops do at the same time in this
// process.
//
// In go runs, each of a tenant; out come places to compute or send a request in.
// One tenant alone has many. While others have runs under way, too, each has few
// enough that they find the processors free: whoever asks for little waits for
// nobody; and who has had them for long has them for half of the time. Places of one tenant are given in the order in which they are asked for.
// Work without a run is not limited. The package knows nothing of what is done, and
// interrupts nothing.
package places
