// Package interpreters keeps one interpreter up to date with what people teach
// the control plane about kinds of resources.
//
// In go ResourceInterpreterCustomizations and
// ResourceInterpreterWebhookConfigurations, as the hub holds them; out come the
// interpreter, whose layers are replaced while it is in use, and word of which
// kinds may be answered otherwise from now on. Until all there are have been read
// once, answers are kinds.Pending: a restart never acts on half the knowledge.
//
// It writes nothing, and never waits for a webhook.
package interpreters
