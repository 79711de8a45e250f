// Package override changes a manifest for one cluster, as override policies
// say.
//
// In go a manifest, the cluster that it is for and the override policies that
// exist; out come the changed manifest and a record of what was applied. What
// an override asks for and cannot be done is an *Error that names policy, rule,
// overrider and path, and says what to do; the manifest is not to be used then.
// What overrides may cost is bounded: see MaxOperations, MaxBytes and MaxWork.
// What a Kustomization put text of a Secret into is named by rule and overrider, without
// path and value. An override never makes another object of a manifest. An Index finds the
// overrides of a resource without looking at all of them.
package override
