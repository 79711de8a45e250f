// Package override changes a manifest for one cluster, as override policies
// say.
//
// In go a manifest, the cluster that it is for and the override policies that
// exist; out come the changed manifest and a record of what was applied. What
// an override asks for and cannot be done is an error that names policy, rule
// and path; the manifest is not to be used then. What overrides may cost is
// bounded: operations per rule, size of a patched document and of the result.
package override
