// Package bootstrap gives a server what it must hold before anything else
// works: the definitions of our kinds, namespaces, and roles.
//
// In goes a connection with all rights and the definitions; out comes a server
// that serves every kind. What is as it should be is not written again, so a
// restart writes nothing. The package never removes anything.
package bootstrap
