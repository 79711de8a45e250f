// Package reporters keeps the names by which the control plane and its agents report
// Events to themselves.
//
// In goes an Event that is written; out comes a refusal if it is reported in one of their
// names by somebody else, or nothing. It says nothing of Events in any other name, nor
// of what they are about.
package reporters
