// Package record shows Events of the control plane and of members in one list, ordered by time.
//
// In go Events with the server that each is from; out come entries in order, as
// text or as fields for scripts. It reads nothing itself.
package record
