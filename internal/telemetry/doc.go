// Package telemetry sets up what a program says about itself: its log and the
// build it is.
//
// In go flags; out come a logger and a version. It never decides what is
// logged.
package telemetry
