// Package alerting sends messages about what happens to sources and Kustomizations.
//
// In go Alerts, Providers, and the Events that other loops emit, by a Recorder that passes them on; out come messages to the
// Providers that an Alert asks for, and Events of the Alerts that have no effect, or whose messages do not arrive: AlertNotReady,
// ProviderNotReady and MessageNotSent. Each Alert has a queue of its own, which is worked on while something waits in it: an
// address that does not answer holds up no other. What waits is bounded, tenants share the room, and all of it is
// forgotten with the process, so that a restart repeats nothing. Where no Alert asks for messages, an Event costs one look.
//
// Commit statuses are for package commitstatus: Providers of those types are left alone. It writes nothing to the hub but Events.
package alerting
