// Package e2e tests the whole system as users run it: the built programs as
// processes, real member clusters, real Git over HTTP and SSH, and a real
// forge. What members with an agent go through is in e2e/agents, and what tenants may
// do in e2e/tenants: each package has a fleet of its own, so that they run side by side.
//
// The programs must be built before (make build). With -short the package does
// nothing; tests whose input lies outside of the checkout skip with a message
// where it is missing.
package e2e
