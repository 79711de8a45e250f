// Package datadir is the folder in which one server keeps everything that it
// must find again after a restart.
//
// In goes a path; out comes a folder that is locked for this process, and files
// in it that are either wholly there or not at all. The package never reads what
// the files mean.
package datadir
