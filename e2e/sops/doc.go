// Command sops encrypts the files that the tests of sources/sops open, with the library of SOPS itself: what that writes is
// what users commit. It is a module of its own, as the library links the clients of all clouds.
//
//	cd e2e/sops && go run . ../../sources/sops/testdata
//
// In go the plain files below plain, and the folder to write to; out come the encrypted files, what the library decrypts
// them to, and new keys. It is run by hand.
package main
