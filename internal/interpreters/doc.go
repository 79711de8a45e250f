// Package interpreters keeps one interpreter up to date with what users configure
// about kinds of resources.
//
// In go ResourceInterpreterCustomizations and
// ResourceInterpreterWebhookConfigurations, as the hub holds them; out come the
// interpreter, whose layers are replaced while it is in use, and callbacks with the
// kinds whose answers may differ from now on. Until all of them have been read
// once, answers are kinds.Pending: a restart never acts on half the configuration.
//
// It writes nothing, and never waits for a webhook.
package interpreters
