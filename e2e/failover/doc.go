// Package failover freezes and kills members, and watches where what ran there goes.
//
// It runs a fleet with --failover=on. The programs must be built before (make build). With
// -short the package does nothing.
package failover
