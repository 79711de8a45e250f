// Package registration has the commands by which clusters become members and stop
// being ones: join and unjoin for those that the control plane reaches into, token,
// register and unregister for those whose agent reaches out.
//
// In go names, tokens and kubeconfigs; out come lines that say what was done, each
// step with --dry-run. Nothing but what makes a token shows one.
package registration
