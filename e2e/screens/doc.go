// Package screens tests what the built programs show to somebody who looks, on a pseudo
// terminal: whole screens, but for what differs from run to run.
//
// The programs must be built before (make build). With -short the package does nothing.
package screens
