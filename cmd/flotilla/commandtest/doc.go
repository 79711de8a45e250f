// Package commandtest runs commands in tests as a shell does: commands below a root with
// the common flags, their output with the exit code, golden files to compare it with, and
// kubeconfigs.
//
// In go commands and arguments; out comes their output. It starts no server and links
// none; controlplane/servertest does.
package commandtest
