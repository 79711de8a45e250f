// Package places limits and shares between tenants what loops do concurrently in this
// process.
//
// In go runs, each of a tenant; out come places, permits to compute or to send a request.
// One tenant alone has many. While others have runs under way, too, each has few
// enough that the others find the processors free: a tenant that asks for little waits for
// none; and one that has had its places for long has them for half of the time. Places of one tenant are given in the order of the requests.
// Work without a run is not limited. The package knows nothing of what is done, and
// interrupts nothing.
package places
