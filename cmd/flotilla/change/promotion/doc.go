// Package promotion makes objects that run in a member part of the fleet without a restart,
// and gives them back.
//
// In go a member's object and clients of the hub and of the member; out come the template
// and the policy that propagate it from then on, or why that would be wrong. Before
// anything is written the result is rehearsed: a dry run on the hub checks whether it
// accepts the objects, the functions of the loops compute what the member would be sent,
// and a dry run in the member shows what that would change.
//
// A promotion writes nothing to the member, and leaves nothing behind on the hub if a step
// fails. Giving back removes what a promotion created, and gives up the fleet's share in
// the object's managed fields.
package promotion
