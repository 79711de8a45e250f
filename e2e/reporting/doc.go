// Package reporting waits, as Karmada's clients do, for the Events of each success.
//
// It runs a fleet with --reporting=karmada. The programs must be built before (make
// build). With -short the package does nothing.
package reporting
