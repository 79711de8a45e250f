// Package keychain finds the login for a registry where docker login and podman login keep it.
//
// In go the environment of a user and a repository; out comes the login that Docker's own clients would use: that of a credential
// helper, where the user's configuration names one for the registry or for all, else that of the configuration itself. It
// runs no other program than such a helper, writes nothing, and no error shows a secret.
package keychain
