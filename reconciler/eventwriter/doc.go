// Package eventwriter writes core/v1 Events to the hub without making the caller wait.
//
// In go Events from any goroutine; out come Events on the hub. Tenants take turns, and the Events of one
// tenant keep their order. The rate is limited, so that Events never slow down the work that they are about.
// Of several Events with one reason on one object only the last within a moment is written, and similar ones
// are aggregated by client-go's EventCorrelator, reason by reason; of lasting reasons each message is written. When the
// queue is full, Events are dropped and counted.
// The package never decides what is worth an Event.
package eventwriter
