// Package bulletin writes Events, off the path of what they are about.
//
// In go Events from any goroutine, which never wait; out come core/v1 Events on the
// hub, those of each tenant in the order in which they came, while tenants take turns,
// at a pace that leaves the hub to others. Of one reason on one object the last within a moment is written,
// and similar ones are counted up as client-go does. What there is no room for is
// dropped and counted. The package decides nothing about what is worth an Event.
package bulletin
