// Package fleettest gives a test a small fleet: loops that run against the control
// plane of package servertest, and a simulated member that has joined it in push
// mode.
//
// In go a control plane, what the member should be like and which loops there are;
// out comes the fleet, which ends with the test. It has no loops of its own.
package fleettest
