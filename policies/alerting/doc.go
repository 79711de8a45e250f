// Package alerting decides which Alerts ask for a message about an Event.
//
// In go an Event of a source or a Kustomization, and an Alert with its Provider; out come whether the Event passes, with
// which metadata, and what of the Alert and the Provider has no effect here. Recent distinguishes an Event from one like it of a
// moment ago. The package composes no message, which package message does, and reads no clock.
package alerting
