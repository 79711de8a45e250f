// Package waitqueue has the work queue of one cluster's Works, and those that wait for an event.
//
// In go Works, what each waits for, and events; out come the Works that have to be
// reconciled again. It also has the back-off of Works that failed. The package reads
// and writes nothing.
package waitqueue
