// Package agentrights says what the agent of a cluster may do, and which rights
// others may ask for in its name.
//
// In go the name of a cluster and the rules of a role; out come the rules that its
// agent has, and what somebody asks for beyond what an agent of Karmada is known to
// need. It reads and writes nothing.
package agentrights
