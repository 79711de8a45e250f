// Package reporters reserves the names under which the control plane and its agents report
// Events.
//
// In goes an Event that is written; out comes a refusal if another user reports it under
// one of these names, or nothing. The package checks neither Events under other names nor
// what an Event is about.
package reporters
