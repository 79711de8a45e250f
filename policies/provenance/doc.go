// Package provenance decides whether what a source fetched may be built, by who signed its commit and its tag, or the artifact
// of a registry.
//
// In go GitRepositories or OCIRepositories, and who signed; out comes the record of that in the metadata of the artifact, whether
// it is what the source asks for, and why it is not. It verifies no signature.
package provenance
