// Package agents tests, with the built programs as processes, members that an agent works
// for: what they go through without the control plane, stopped for longer than their
// Lease lasts, with an older copy of their folder, and under a control plane that was set
// back.
//
// The programs must be built before (make build). With -short the package does nothing.
package agents
