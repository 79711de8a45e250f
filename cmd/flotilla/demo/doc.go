// Package demo runs the example fleet on this machine and shows it at work, for
// somebody who has never heard of the project.
//
// In go the path of flotillad and a folder; out come a live table and, at the
// end, hints at what to try. It talks to loopback only, writes below its folder
// only, and stops all that it started.
package demo
