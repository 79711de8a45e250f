// Package submodule fetches a commit's submodules, and puts their trees where
// they belong in its own.
//
// In go a git.Tree, where it came from and how; out comes an fs.FS that has the
// files of the submodules as well. What .gitmodules says is the word of a
// stranger: an address is http, https or ssh, is judged as any that a tenant
// names, and may not lead from a public repository into the control plane's
// network. Credentials go to the scheme, host and port that they were given for.
// How deep and how many submodules there are is bounded, and so is each transfer.
// The package starts no process and changes nothing.
package submodule
