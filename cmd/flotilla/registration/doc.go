// Package registration has the commands by which clusters join and leave the fleet: join and
// unjoin for clusters to which the control plane connects, and token, register and unregister for
// clusters whose agent connects to the control plane.
//
// In go names, tokens and kubeconfigs; out come lines about what was done, each step with
// --dry-run. Only the command that creates a token shows one.
package registration
