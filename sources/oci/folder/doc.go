// Package folder makes the layer of an artifact out of a folder on this machine, and a folder out of a layer.
//
// In go a folder, or one file, and what to leave out; out comes the archive that Flux's command line makes of the same, byte for
// byte where the modes of files are the usual ones. Equal files give equal bytes, whoever owns them and wherever they are. The other way an
// archive that nobody has looked at becomes files within the limits of a store, and they become a folder that is there as a whole or, where there
// is one, go into it one after the other once all of them are on its disk. Nothing is written outside of that folder, and nothing
// is sent anywhere.
package folder
