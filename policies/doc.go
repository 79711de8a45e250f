// Package policies is the room of decisions: what should run where, and why.
//
// Its packages are functions of values. Templates, policies, overrides,
// clusters and today's placements go in; claims, bindings, placements,
// manifests, statuses and refusals come out. Nothing in this room reads a
// clock, calls an API, logs or keeps state: equal input gives equal output.
//
// The flow scripts in testdata/flow read as the documentation of the rules.
package policies
