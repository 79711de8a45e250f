// Package commandtest gives a test the command line as a shell has it: commands
// below a root with the flags that all have, what a call prints with its exit code,
// golden files to hold that to, and kubeconfigs that lead somewhere.
//
// In go commands and words; out comes their output. It starts no server and links
// none; controlplane/servertest does.
package commandtest
