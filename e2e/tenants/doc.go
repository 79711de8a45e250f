// Package tenants tries, as a tenant would, every way of the API that leads out
// of a namespace: each field that refers to something, with each namespace,
// account, scope and address that is not the tenant's.
//
// Fields are found in the definitions of the kinds that a tenant may write: a new
// one that is neither tried nor known to be harmless fails the test. The programs
// must be built before (make build). With -short the package does nothing.
package tenants
