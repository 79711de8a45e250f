// Package promotion takes objects that run in a member over into the fleet
// without a restart, and gives them back.
//
// In go a member's object and clients of the hub and of the member; out come the
// template and the policy that carry it from then on, or why that would be wrong.
// What will happen is rehearsed before anything is written: the hub is asked
// whether it takes the objects, the functions that the loops decide with say what
// the member would be sent, and the member is asked what that would change.
//
// A promotion writes nothing to the member, and leaves nothing behind on the hub
// when a step fails. Giving back removes what a promotion made, and gives up the
// fleet's share in the object's managed fields.
package promotion
