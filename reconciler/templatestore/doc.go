// Package templatestore keeps the resource templates of the kinds that are asked for.
//
// In go the kinds that policies select and bindings name; out come the
// templates of those kinds, an event for each change of what is propagated of
// them, and for each kind whether the control plane serves it. Kinds are
// watched while somebody wants them: one that is installed later is picked up
// when its definition appears, one that nobody wants any more is let go.
//
// What a read returns is one of three things: present, absent or unknown. Only
// a watch that has listed everything says absent, and Gone asks the control plane
// itself. The package writes nothing.
package templatestore
