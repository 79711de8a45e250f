// Package statistics counts what policies carry and collects its problems.
//
// In go the templates and bindings that exist, one event at a time, and the outcomes
// of passes over templates; out come, for each policy, how many of them it
// carries and the problems that they have. The cost of an event does not depend on the number of
// objects: nothing is ever listed. The package calls no API and has no clock.
package statistics
