// Package providers connects to the forges that Providers lead to.
//
// In go a Provider, the address of a repository, and the object on whose behalf it is used; out comes what speaks with the forge. That
// is kept for the object as long as what it was made from stays the same, so that connections are used again. Secrets are read
// without a cache. It writes nothing, and asks no forge.
//
// What only a person can mend is of class loop.ClassStalled, with the reason ProviderNotReady. Errors may hold what a Provider got of
// Secrets: who reports them cleans them (package inherited).
package providers
