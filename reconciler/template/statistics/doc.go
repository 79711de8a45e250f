// Package statistics counts what policies carry and collects what is wrong with it.
//
// In go the templates and bindings that there are, one event at a time, and what
// a pass over a template resulted in; out come, for each policy, how many of them it
// carries and the problems that they have. An event costs what it changes:
// nothing is ever listed. The package calls no API and has no clock.
package statistics
