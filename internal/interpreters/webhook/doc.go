// Package webhook is the layer of interpreter rules that servers answer.
//
// In go ResourceInterpreterWebhookConfigurations and objects; out come rules
// that never wait: a question is sent in the background, its rule says
// kinds.Pending until the answer is there, and gives it to all who ask the same
// from then on. Questions are the same where operation and content are: what a
// server says about one must not depend on anything else.
//
// Each webhook has a queue, connections and a limit of its own, so that one that
// hangs keeps only its own objects waiting. What a server sends is bounded in
// size and time, and checked before it is used. Redirects and proxies are not
// followed, nothing is sent unencrypted, and what a server says of its failures
// is cut short. The package changes no object and reads nothing from the hub but
// the Services that webhooks name.
package webhook
