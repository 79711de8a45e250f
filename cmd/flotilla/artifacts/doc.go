// Package artifacts has the commands for artifacts of container registries: push, pull, tag, list and diff.
//
// In go addresses of artifacts, folders, and the login of the user; out come artifacts in a registry or files on this machine, and what was done,
// for people or for programs. What the commands do is done below sources/: here are their flags and their words. None of
// them talks to a control plane.
package artifacts
