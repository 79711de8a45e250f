// Package promotion takes objects that run in a member over into the fleet
// without a restart, and gives them back.
//
// In go a member's object and clients of the hub and of the member; out come the
// template and the policy that carry it from then on, or why that would be wrong.
// What will happen is rehearsed before anything is written: the hub is asked
// whether it takes the objects, the functions that the loops decide with say what
// the member would be sent, and the member is asked what that would change.
//
// Nothing is written to the member, and nothing is left behind on the hub when a
// step fails.
package promotion
