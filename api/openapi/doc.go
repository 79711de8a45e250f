// Package openapi holds the OpenAPI definitions of the kinds that are served in
// process: Cluster, ResourceRegistry, Work and the bindings, with the types of
// ours that they are made of.
//
// In goes a function that turns a name into a reference, out come definitions.
// Types of Kubernetes that they refer to (such as Taint and ObjectMeta) are not
// among them: the server adds those. All code here is generated.
package openapi
