// Package tenancy decides who acts for a Kustomization: a service account of its
// namespace, or the control plane itself.
//
// In go the namespace of a Kustomization, the account that it names and what it
// refers to; out comes an identity. It also says which grant would lift a
// refusal, and how much a namespace may have. It reads nothing.
package tenancy
